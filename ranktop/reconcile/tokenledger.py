"""Where evicted tokens and host hits went: evicted = written + dropped + lost, hit = read + phantom."""

from __future__ import annotations

from msgspec import Struct

from ranktop.reconcile.ledger import Window


class TokenLedger(Struct, frozen=True):
    """Tokens of one window, logical. None where the version does not count them.

    Under write_through a token is written before it is evicted, so `written` is at most what was evicted and a write
    that is still in L1 does not count as kept.
    """

    prefill: float | None = None
    device_hit: float | None = None
    evicted: float | None = None
    written: float | None = None
    dropped: float | None = None
    lost: float | None = None
    """Evicted, and neither written nor counted as dropped: never offered to L2, or hit too seldom."""
    hit: float | None = None
    read: float | None = None
    phantom: float | None = None
    """Counted as a hit and computed again."""
    backup: float | None = None
    """All that was written to L2 in the window, evicted from L1 or not."""


def token_ledger(window: Window) -> TokenLedger:
    """The two sums of the window."""
    evicted, backup = window.gain("evicted_tokens"), window.gain("backup_tokens")
    dropped = _sum(window.gain("dropped_tokens"), window.gain("rejected_tokens"))
    hit = _sum(window.gain("host_hit_tokens"), window.gain("storage_hit_tokens"))
    loaded = window.gain("load_back_tokens")
    modes = ("input_tokens", "device_hit_tokens", "host_hit_tokens", "storage_hit_tokens")
    written = lost = None
    if evicted is not None and backup is not None:
        dropped_evicted = min(dropped or 0.0, evicted)
        written = min(backup, evicted - dropped_evicted)
        lost = evicted - dropped_evicted - written
    read = min(loaded, hit) if loaded is not None and hit is not None else loaded
    return TokenLedger(
        prefill=_sum(*(window.gain(mode) for mode in modes)),
        device_hit=window.gain("device_hit_tokens"),
        evicted=evicted,
        written=written,
        dropped=dropped,
        lost=lost,
        hit=hit,
        read=read,
        phantom=hit - read if hit is not None and read is not None else None,
        backup=backup,
    )


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
