"""What ranktop itself costs: from counts since the start to what is drawn."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from ranktop.sample import Asked, OwnUse

WINDOW_SECONDS = 30.0
"""Long enough for several pages of every server."""


SETTLE_SECONDS = 2.0
"""Starting and the first paint are not what watching costs."""


class Asking(NamedTuple):
    """How a server was asked. `share` of the time it had such a request: no more of its HTTP process can it cost."""

    address: str
    share: float
    per_minute: float


class OwnCost(NamedTuple):
    """Over the last WINDOW_SECONDS at most; None before there are two readings from after the start."""

    cpu_share: float | None
    """Of one CPU."""
    rss_bytes: int | None
    terminal_bytes_per_second: float | None
    page_walks: int
    """Since the start."""
    asked: tuple[Asking, ...]
    """The most burdened first."""


class OwnTrail:
    """Readings of the window, and what they come to."""

    def __init__(self) -> None:
        self._readings: deque[tuple[OwnUse, int | None]] = deque()
        self._settles_at: float | None = None

    def push(self, use: OwnUse, written_bytes: int | None) -> OwnCost:
        """Take a reading in; `written_bytes` to the terminal since the start."""
        if self._settles_at is None:
            self._settles_at = use.at_monotonic_seconds + SETTLE_SECONDS
        if use.at_monotonic_seconds < self._settles_at:
            return OwnCost(None, use.rss_bytes, None, use.page_walks, ())
        readings = self._readings
        readings.append((use, written_bytes))
        while readings[0][0].at_monotonic_seconds < use.at_monotonic_seconds - WINDOW_SECONDS:
            readings.popleft()
        first, first_bytes = readings[0]
        span = use.at_monotonic_seconds - first.at_monotonic_seconds
        if span <= 0:
            return OwnCost(None, use.rss_bytes, None, use.page_walks, ())
        return OwnCost(
            (use.cpu_seconds - first.cpu_seconds) / span,
            use.rss_bytes,
            (written_bytes - first_bytes) / span if written_bytes is not None and first_bytes is not None else None,
            use.page_walks,
            _asked(first, use, span),
        )


def _asked(first: OwnUse, last: OwnUse, span: float) -> tuple[Asking, ...]:
    found: list[Asking] = []
    for address, now in last.asked.items():
        before = first.asked.get(address, Asked())
        found.append(
            Asking(address, (now.seconds - before.seconds) / span, 60 * (now.requests - before.requests) / span)
        )
    return tuple(sorted(found, key=lambda asking: -asking.share))
