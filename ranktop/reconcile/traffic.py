"""What moved through the tiers of a server, in tokens and bytes a second."""

from __future__ import annotations

from ranktop.reconcile.series import Series
from ranktop.reconcile.tiers import is_absent_zero, logical
from ranktop.reconcile.verdict import Traffic

_TOKENS = {
    "backup": "sglang:hicache_backup_tokens_total",
    "load_back": "sglang:load_back_tokens_total",
    "evicted": "sglang:evicted_tokens_total",
}
_DROPPED = ("sglang:hicache_dropped_tokens_total", "sglang:hicache_write_rejected_tokens_total")
_COPIES = {"backup": "sglang:hicache_backup", "load_back": "sglang:load_back"}


def traffic(gains: Series, seconds: float | None, version: str | None, ranks: int | None = None) -> Traffic:
    """The server's traffic over a window of `seconds`, from `Series.since`; no rate without a page before.

    A counter that is not on the page is 0 where HiCache is on and the version has it: it appears with its first event.
    """
    if seconds is None:
        return Traffic()

    def rate(name: str, tokens: float | None) -> float | None:
        if tokens is None and is_absent_zero(gains, name, version):
            return 0.0
        return None if tokens is None else tokens / seconds

    prefetched, stored = "sglang:prefetched_tokens_total", "sglang:backuped_tokens_total"
    return Traffic(
        rate(_TOKENS["backup"], _kv_tokens(gains, _TOKENS["backup"], ranks)),
        rate(_TOKENS["load_back"], _kv_tokens(gains, _TOKENS["load_back"], ranks)),
        rate(_TOKENS["evicted"], logical(gains, _TOKENS["evicted"], ranks)),
        {key: tokens / seconds for key, tokens in _dropped(gains, ranks).items()},
        _per_second(gains.most_over_groups(prefetched), seconds),
        _per_second(gains.most_over_groups(stored), seconds),
        _copy_speed(gains, _COPIES["backup"]),
        _copy_speed(gains, _COPIES["load_back"]),
        seconds,
    )


def _per_second(amount: float | None, seconds: float) -> float | None:
    return None if amount is None else amount / seconds


def _kv_tokens(gains: Series, name: str, ranks: int | None) -> float | None:
    """Logical tokens of the KV pool; before 0.5.18 the counter has no `pool` label."""
    labelled = logical(gains, name, ranks, pool="kv")
    if labelled is not None or any("pool" in labels for labels, _ in gains.rows(name)):
        return labelled
    return logical(gains, name, ranks)


def _dropped(gains: Series, ranks: int | None) -> dict[str, float]:
    """Logical tokens by `reason/pool`."""
    writers = ranks or len(gains.ranks())
    found: dict[str, float] = {}
    for name in _DROPPED if writers else ():
        for labels, tokens in gains.rows(name):
            key = f"{labels.get('reason') or 'dropped'}/{labels.get('pool', 'kv')}"
            found[key] = found.get(key, 0.0) + tokens * gains.groups() / writers
    return found


def _copy_speed(gains: Series, family: str) -> float | None:
    """Bytes over the seconds spent copying, both summed over the same ranks."""
    moved = gains.total(f"{family}_bytes_total")
    spent = gains.total(f"{family}_duration_seconds_sum")
    return moved / spent if moved is not None and spent else None
