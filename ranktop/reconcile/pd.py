"""Prefill-decode hand-off of one server: queues by its role, transfers, failures."""

from __future__ import annotations

from collections.abc import Iterable

from ranktop.reconcile.histograms import latency
from ranktop.reconcile.ranklabels import RankLabels
from ranktop.reconcile.series import Series
from ranktop.reconcile.verdict import Handoff, RankTransfers
from ranktop.sample import ServerInfo

_LATENCY = "sglang:kv_transfer_latency_ms"
_MEBIBYTE = 1 << 20
"""`kv_transfer_total_mb` counts them."""
_PREFILL_QUEUES = ("num_prefill_bootstrap_queue_reqs", "num_prefill_inflight_queue_reqs")
_DECODE_QUEUES = (
    "num_decode_prealloc_queue_reqs",
    "num_decode_transfer_queue_reqs",
    "num_decode_host_receive_queue_reqs",
)


def handoff(gains: Series, seconds: float | None, info: ServerInfo | None = None) -> Handoff:
    """The hand-off over a window (`Series.since`).

    `role` is the page's engine_type, else the server argument; None for a server that hands nothing off.
    """
    role = _role(gains, info)
    if role is None:
        return Handoff()
    ranks = sorted(gains.ranks())
    moved = _known(gains.own("sglang:kv_transfer_total_mb_sum", rank) for rank in ranks)
    counts = _known(gains.own(f"{_LATENCY}_count", rank) for rank in ranks)
    return Handoff(
        role,
        _queues(gains, role),
        latency(gains, "sglang:kv_transfer_bootstrap_ms"),
        latency(gains, _LATENCY),
        _whole(gains.most_over_groups("sglang:num_bootstrap_failed_reqs_total")),
        _whole(gains.most_over_groups("sglang:num_transfer_failed_reqs_total")),
        _whole(gains.most_over_groups("sglang:num_prefill_retries_total")),
        int(max(counts)) if counts else None,
        sum(moved) * _MEBIBYTE / seconds if moved and seconds else None,
        {str(rank): _of_rank(gains, rank) for rank in ranks},
        seconds,
    )


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
    return RankTransfers(_mean_of(gains, _LATENCY, rank), _mean_of(gains, "sglang:kv_transfer_speed_gb_s", rank))


def _mean_of(gains: Series, family: str, rank: RankLabels) -> float | None:
    count, total = gains.own(f"{family}_count", rank), gains.own(f"{family}_sum", rank)
    return total / count if count and total is not None else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
