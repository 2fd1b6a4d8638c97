"""Running totals of one server at one page, counted once however many ranks count them.

Rules that speak of a window subtract two ledgers. None means that the page does not tell, never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from ranktop.reconcile.families import FAMILIES
from ranktop.reconcile.series import Series
from ranktop.reconcile.tiers import is_absent_zero, logical

_STATS_NAMES = tuple(name for family in FAMILIES.values() if family.writer == "stats" for name in family.series_names)
_FORWARD_NAMES = (
    "sglang:realtime_tokens_total",
    "sglang:prefill_effective_tokens_total",
    "sglang:cuda_graph_passes_total",
    "sglang:generation_tokens_total",
)
_UNFULFILLED = "storage_prefetch_unfulfilled_tokens_total"


class Ledger(Struct, frozen=True):
    """Totals since the server's start. Tokens are logical (one group's view, groups added), bytes are node totals."""

    at_unix_seconds: float
    at_monotonic_seconds: float
    input_tokens: float | None = None
    device_hit_tokens: float | None = None
    host_hit_tokens: float | None = None
    storage_hit_tokens: float | None = None
    evicted_tokens: float | None = None
    backup_tokens: float | None = None
    backup_bytes: float | None = None
    load_back_tokens: float | None = None
    load_back_bytes: float | None = None
    dropped_tokens: float | None = None
    dropped_by_reason: dict[str, float] = {}
    rejected_tokens: float | None = None
    """Writes to L2 that were refused (no release up to 0.5.23 has the counter, later ones do)."""
    rejected_by_reason: dict[str, float] = {}
    prefetched_tokens: float | None = None
    prefetched_by_rank: dict[str, float] = {}
    """One rank's own tokens by its storage labels `dp/pp/cp/tp`."""
    unfulfilled_by_reason: dict[str, float] = {}
    """Tokens asked of storage and not given (from 0.5.20)."""
    storage_backup_tokens: float | None = None
    storage_groups: frozenset[str] = frozenset()
    """`dp_rank` of every storage series."""
    group_input_tokens: dict[str, float] = {}
    """Computed prefill tokens by `dp_rank`."""
    verify_calls: float | None = None
    finished_requests: float | None = None
    prompt_tokens: float | None = None
    retracted_requests: float | None = None
    bootstrap_failures_by_rank: dict[str, float] = {}
    """By scheduler labels `dp/pp/tp`; every rank counts a request that fails."""
    transfer_failures_by_rank: dict[str, float] = {}
    transfers_by_rank: dict[str, float] = {}
    """Finished transfers that a prefill rank observed."""
    ttft_seconds_sum: float | None = None
    ttft_count: float | None = None
    e2e_seconds_sum: float | None = None
    e2e_count: float | None = None
    inter_token_seconds_sum: float | None = None
    inter_token_count: float | None = None
    forward_count: float | None = None
    """A number that grows whenever a batch ran; of no meaning in itself."""
    gauges_fingerprint: int | None = None
    """Equal at two pages: no scheduler gauge or batch counter moved between them."""


class Window(NamedTuple):
    """Two ledgers of one server. `before` None: since its start."""

    before: Ledger | None
    after: Ledger

    @property
    def seconds(self) -> float | None:
        """None since the server's start."""
        return None if self.before is None else self.after.at_monotonic_seconds - self.before.at_monotonic_seconds

    def gain(self, field: str) -> float | None:
        """What a total gained; None when the newer page does not tell, or the total went back."""
        now = getattr(self.after, field)
        if now is None:
            return None
        then = getattr(self.before, field) if self.before is not None else None
        gained = now - (then or 0.0)
        return gained if gained >= 0 else None

    def gains(self, field: str) -> dict[str, float]:
        """What a total by reason or rank gained, entry by entry; those that went back are left out."""
        then: dict[str, float] = getattr(self.before, field) if self.before is not None else {}
        now: dict[str, float] = getattr(self.after, field)
        gained = {key: value - then.get(key, 0.0) for key, value in now.items()}
        return {key: value for key, value in gained.items() if value >= 0}


def ledger(series: Series, at_monotonic_seconds: float, version: str | None, ranks: int) -> Ledger:
    """The totals on one page."""
    groups = series.groups()

    def radix(name: str, **wanted: str) -> float | None:
        value = logical(series, f"sglang:{name}", ranks, **wanted)
        if value is None and is_absent_zero(series, f"sglang:{name}", version):
            return 0.0
        return value

    def pooled(name: str) -> float | None:
        # Other pools (mamba, swa) count the same requests once more; before 0.5.18 there is no such label.
        return radix(name, pool="kv") if series.rows(f"sglang:{name}", pool="kv") else radix(name)

    def effective(mode: str) -> float | None:
        return series.over_groups("sglang:prefill_effective_tokens_total", mode=mode)

    def by_reason(name: str) -> dict[str, float]:
        return {
            reason: total * groups / ranks for reason, total in _sums(series, f"sglang:{name}", ("reason",)).items()
        }

    # A rank that moves nothing has no storage series, so a mean over ranks would be too low.
    def stored(name: str, **wanted: str) -> float | None:
        return series.most_over_groups(f"sglang:{name}", **wanted)

    forward = [series.total(name) for name in _FORWARD_NAMES]
    return Ledger(
        at_unix_seconds=series.at_unix_seconds,
        at_monotonic_seconds=at_monotonic_seconds,
        input_tokens=effective("input"),
        device_hit_tokens=effective("device_hit"),
        host_hit_tokens=effective("host_hit"),
        storage_hit_tokens=effective("storage_hit"),
        evicted_tokens=radix("evicted_tokens_total"),
        backup_tokens=pooled("hicache_backup_tokens_total"),
        backup_bytes=series.total("sglang:hicache_backup_bytes_total"),
        load_back_tokens=pooled("load_back_tokens_total"),
        load_back_bytes=series.total("sglang:load_back_bytes_total"),
        dropped_tokens=pooled("hicache_dropped_tokens_total"),
        dropped_by_reason=by_reason("hicache_dropped_tokens_total"),
        rejected_tokens=logical(series, "sglang:hicache_write_rejected_tokens_total", ranks),
        rejected_by_reason=by_reason("hicache_write_rejected_tokens_total"),
        prefetched_tokens=stored("prefetched_tokens_total"),
        prefetched_by_rank=_sums(
            series, "sglang:prefetched_tokens_total", ("dp_rank", "pp_rank", "attn_cp_rank", "tp_rank")
        ),
        unfulfilled_by_reason={
            reason: tokens
            for reason in _sums(series, f"sglang:{_UNFULFILLED}", ("reason",))
            if (tokens := stored(_UNFULFILLED, reason=reason)) is not None
        },
        storage_backup_tokens=stored("backuped_tokens_total"),
        storage_groups=_storage_groups(series),
        group_input_tokens=_group_inputs(series),
        verify_calls=series.total("sglang:spec_verify_calls_total"),
        finished_requests=series.total("sglang:num_requests_total"),
        prompt_tokens=series.total("sglang:prompt_tokens_total"),
        retracted_requests=series.most_over_groups("sglang:num_retracted_requests_total"),
        bootstrap_failures_by_rank=_by_rank(series, "sglang:num_bootstrap_failed_reqs_total"),
        transfer_failures_by_rank=_by_rank(series, "sglang:num_transfer_failed_reqs_total"),
        transfers_by_rank=_by_rank(series, "sglang:kv_transfer_latency_ms_count"),
        ttft_seconds_sum=series.total("sglang:time_to_first_token_seconds_sum"),
        ttft_count=series.total("sglang:time_to_first_token_seconds_count"),
        e2e_seconds_sum=series.total("sglang:e2e_request_latency_seconds_sum"),
        e2e_count=series.total("sglang:e2e_request_latency_seconds_count"),
        inter_token_seconds_sum=series.total("sglang:inter_token_latency_seconds_sum"),
        inter_token_count=series.total("sglang:inter_token_latency_seconds_count"),
        forward_count=sum(known) if (known := [count for count in forward if count is not None]) else None,
        gauges_fingerprint=_fingerprint(series),
    )


def over(ledgers: Sequence[Ledger], seconds: float) -> Window | None:
    """The newest ledger held against the one at least `seconds` before it; None while less than that was seen."""
    if len(ledgers) < 2:
        return None
    newest = ledgers[-1]
    for older in reversed(ledgers[:-1]):
        if newest.at_monotonic_seconds - older.at_monotonic_seconds >= seconds:
            return Window(older, newest)
    return None


def has_restarted(before: Ledger, after: Ledger) -> bool:
    """Whether another server answers than the one before: one of its totals went back."""
    fields = ("forward_count", "finished_requests", "prompt_tokens", "backup_bytes", "evicted_tokens")
    pairs = [(getattr(before, field), getattr(after, field)) for field in fields]
    return any(then is not None and (now is None or now < then) for then, now in pairs)


def _by_rank(series: Series, name: str) -> dict[str, float]:
    return _sums(series, name, ("dp_rank", "pp_rank", "tp_rank"))


def _sums(series: Series, name: str, labels: tuple[str, ...]) -> dict[str, float]:
    """Totals by the values of some labels, joined with `/`; an absent label of a rank counts as 0."""
    sums: dict[str, float] = {}
    for row, value in series.rows(name):
        key = "/".join(row.get(label, "0" if label.endswith("_rank") else "") for label in labels)
        sums[key] = sums.get(key, 0.0) + value
    return sums


def _storage_groups(series: Series) -> frozenset[str]:
    names = ("prefetched_tokens_total", "backuped_tokens_total", _UNFULFILLED)
    rows = [row for name in names for row, _ in series.rows(f"sglang:{name}")]
    return frozenset(row.get("dp_rank", "0") for row in rows)


def _group_inputs(series: Series) -> dict[str, float]:
    found: dict[str, float] = {}
    for leader in series.leaders():
        own = series.own("sglang:prefill_effective_tokens_total", leader, mode="input")
        if own is not None:
            found[str(leader.dp)] = own
    return found


def _fingerprint(series: Series) -> int | None:
    # Sorted, as the order of a page's lines is arbitrary.
    values = tuple((name, *sorted(value for _, value in series.rows(name))) for name in _STATS_NAMES if name in series)
    return hash(values) if values else None
