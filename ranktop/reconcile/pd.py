"""Prefill-decode hand-off of one server: queues by its role, transfers by rank, failures, who registered."""

from __future__ import annotations

from msgspec import Struct

from ranktop.reconcile.histograms import latency
from ranktop.reconcile.series import RankLabels, Series
from ranktop.reconcile.verdict import ServiceLatency
from ranktop.sample import Bootstrap, ServerInfo

BOOTSTRAP_TIMEOUT_SECONDS = 300.0
"""SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT and _WAITING_TIMEOUT of 0.5.18 and 0.5.23, where the environment has none."""

_LATENCY = "sglang:kv_transfer_latency_ms"
_PREFILL_QUEUES = ("num_prefill_bootstrap_queue_reqs", "num_prefill_inflight_queue_reqs")
_DECODE_QUEUES = (
    "num_decode_prealloc_queue_reqs",
    "num_decode_transfer_queue_reqs",
    "num_decode_host_receive_queue_reqs",
)


class RankTransfers(Struct, frozen=True):
    """One rank's share of the hand-off in the window. A rank that never observed one has no histogram: None."""

    transfers: int | None = None
    mean_milliseconds: float | None = None
    mean_gib_per_second: float | None = None
    bytes: float | None = None
    bootstrap_failures: int | None = None
    transfer_failures: int | None = None


class Handoff(Struct, frozen=True):
    """The hand-off of one server. Counts are of the window, since the start when there is no page before."""

    role: str | None
    queues: dict[str, int] = {}
    """Requests by queue of the role, every DP group counted once. Frozen until 0.5.22 while nothing runs."""
    bootstrap_milliseconds: ServiceLatency = ServiceLatency()
    transfer_milliseconds: ServiceLatency = ServiceLatency()
    bootstrap_failures: int | None = None
    """Failed requests, counted once though every rank of a group counts them. None before the first."""
    transfer_failures: int | None = None
    retries: int | None = None
    transfers: int | None = None
    """Of the rank with the most: under LayerSplit every rank takes part in every transfer."""
    bytes_per_second: float | None = None
    ranks: dict[RankLabels, RankTransfers] = {}
    window_seconds: float | None = None


def handoff(gains: Series, seconds: float | None, info: ServerInfo | None = None) -> Handoff:
    """The hand-off over a window (`series.window`).

    `role` is the page's engine_type, else the server argument; None for a server that hands nothing off.
    """
    role = _role(gains, info)
    if role is None:
        return Handoff(None)
    ranks = {rank: _of_rank(gains, rank) for rank in sorted(gains.ranks())}
    sizes = [share.bytes for share in ranks.values() if share.bytes is not None]
    counts = [share.transfers for share in ranks.values() if share.transfers is not None]
    return Handoff(
        role,
        _queues(gains, role),
        latency(gains, "sglang:kv_transfer_bootstrap_ms"),
        latency(gains, _LATENCY),
        _whole(gains.most_over_groups("sglang:num_bootstrap_failed_reqs_total")),
        _whole(gains.most_over_groups("sglang:num_transfer_failed_reqs_total")),
        _whole(gains.most_over_groups("sglang:num_prefill_retries_total")),
        max(counts, default=None),
        sum(sizes) / seconds if sizes and seconds else None,
        ranks,
        seconds,
    )


def ranks_without_transfers(found: Handoff, expects_all: bool, peers_at_least: int = 20) -> tuple[RankLabels, ...]:
    """Ranks that moved nothing though a peer moved `peers_at_least`.

    `expects_all`: LayerSplit or all-CP transfer. Without them the ranks behind CP 0 are dummies, and never transfer.
    """
    if not expects_all or (found.transfers or 0) < peers_at_least:
        return ()
    return tuple(rank for rank, share in found.ranks.items() if not share.transfers)


def unregistered(bootstrap: Bootstrap) -> tuple[str, ...]:
    """Ranks whose registration is known to be missing, in SGLang's tag words. Before ready only a count is known."""
    return tuple(
        f"DP{rank.dp} PP{rank.pp} ATTN_CP{rank.cp} TP{rank.tp}"
        for rank in bootstrap.ranks
        if rank.is_registered is False
    )


def seconds_to_timeout(waiting_since: float, now: float, timeout_seconds: float = BOOTSTRAP_TIMEOUT_SECONDS) -> float:
    """Seconds until SGLang itself gives a waiting request up; 0 when it should have done so."""
    return max(0.0, waiting_since + timeout_seconds - now)


def _role(series: Series, info: ServerInfo | None) -> str | None:
    rows = series.rows("sglang:max_total_num_tokens") or series.rows("sglang:num_running_reqs")
    roles = {labels.get("engine_type") for labels, _ in rows} & {"prefill", "decode", "dynamic"}
    if len(roles) == 1:
        return roles.pop()
    mode = info.args.get("disaggregation_mode") if info is not None else None
    return mode if mode in ("prefill", "decode") else None


def _queues(series: Series, role: str) -> dict[str, int]:
    names = {"prefill": _PREFILL_QUEUES, "decode": _DECODE_QUEUES}.get(role, _PREFILL_QUEUES + _DECODE_QUEUES)
    found = {name: series.over_groups(f"sglang:{name}") for name in (*names, "num_queue_reqs")}
    return {name: int(value) for name, value in found.items() if value is not None}


def _of_rank(gains: Series, rank: RankLabels) -> RankTransfers:
    mebibytes = gains.own("sglang:kv_transfer_total_mb_sum", rank)
    return RankTransfers(
        _whole(gains.own(f"{_LATENCY}_count", rank)),
        _mean_of(gains, _LATENCY, rank),
        _mean_of(gains, "sglang:kv_transfer_speed_gb_s", rank),
        None if mebibytes is None else mebibytes * 2**20,
        _whole(gains.own("sglang:num_bootstrap_failed_reqs_total", rank)),
        _whole(gains.own("sglang:num_transfer_failed_reqs_total", rank)),
    )


def _mean_of(gains: Series, family: str, rank: RankLabels) -> float | None:
    count, total = gains.own(f"{family}_count", rank), gains.own(f"{family}_sum", rank)
    return total / count if count and total is not None else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
