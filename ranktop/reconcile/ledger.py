"""Running totals of one server at one page, counted once however many ranks count them.

Rules that speak of a window subtract two ledgers. None means that the page does not tell, never 0.
"""

from __future__ import annotations

from msgspec import Struct

from ranktop.reconcile.series import Series
from ranktop.reconcile.tiers import is_absent_zero, logical


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
    prefetched_tokens: float | None = None
    storage_backup_tokens: float | None = None
    verify_calls: float | None = None
    finished_requests: float | None = None
    retracted_requests: float | None = None


def ledger(series: Series, at_monotonic_seconds: float, version: str | None, ranks: int) -> Ledger:
    """The totals on one page."""

    def radix(name: str, **wanted: str) -> float | None:
        value = logical(series, f"sglang:{name}", ranks, **wanted)
        if value is None and is_absent_zero(series, f"sglang:{name}", version):
            return 0.0
        return value

    def effective(mode: str) -> float | None:
        return series.over_groups("sglang:prefill_effective_tokens_total", mode=mode)

    reasons: dict[str, float] = {}
    for labels, value in series.rows("sglang:hicache_dropped_tokens_total"):
        reason = labels.get("reason", "")
        reasons[reason] = reasons.get(reason, 0.0) + value * series.groups() / ranks
    return Ledger(
        at_unix_seconds=series.at_unix_seconds or 0.0,
        at_monotonic_seconds=at_monotonic_seconds,
        input_tokens=effective("input"),
        device_hit_tokens=effective("device_hit"),
        host_hit_tokens=effective("host_hit"),
        storage_hit_tokens=effective("storage_hit"),
        evicted_tokens=radix("evicted_tokens_total"),
        backup_tokens=radix("hicache_backup_tokens_total"),
        backup_bytes=series.total("sglang:hicache_backup_bytes_total"),
        load_back_tokens=radix("load_back_tokens_total"),
        load_back_bytes=series.total("sglang:load_back_bytes_total"),
        dropped_tokens=radix("hicache_dropped_tokens_total"),
        dropped_by_reason=reasons,
        prefetched_tokens=logical(series, "sglang:prefetched_tokens_total", ranks),
        storage_backup_tokens=series.total("sglang:backuped_tokens_total"),
        verify_calls=series.total("sglang:spec_verify_calls_total"),
        finished_requests=series.total("sglang:num_requests_total"),
        retracted_requests=logical(series, "sglang:num_retracted_requests_total", ranks),
    )


def gain(before: Ledger, after: Ledger, field: str) -> float | None:
    """What a total gained between two ledgers; None when either does not tell, or the server restarted between."""
    then, now = getattr(before, field), getattr(after, field)
    if now is None:
        return None
    gained = now - (then or 0.0)
    return gained if gained >= 0 else None


def over(ledgers: tuple[Ledger, ...], seconds: float) -> tuple[Ledger, Ledger] | None:
    """The newest ledger and the one at least `seconds` before it; None while less than that was seen."""
    if len(ledgers) < 2:
        return None
    newest = ledgers[-1]
    for older in reversed(ledgers[:-1]):
        if newest.at_monotonic_seconds - older.at_monotonic_seconds >= seconds:
            return older, newest
    return None
