"""Times as text: ISO 8601 in documents, the reader's own zone on a screen. And a node's clock, which may run fast."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from msgspec import Struct


def iso_utc(unix_seconds: float) -> str:
    """`2026-11-29T14:03:27.120Z`."""
    return datetime.fromtimestamp(unix_seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_of_day(unix_seconds: float) -> str:
    """`14:03:27` in the local zone."""
    return datetime.fromtimestamp(unix_seconds).strftime("%H:%M:%S")


def time_of_day_from_iso(text: str) -> str:
    """The time of day of an ISO 8601 stamp, in the local zone."""
    return datetime.fromisoformat(text).astimezone().strftime("%H:%M:%S")


def duration(seconds: float) -> str:
    """`45s`, `12m`, `2h13m`, `3d4h`: two units at most."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 60:
        return f"{minutes}m"
    if hours < 24:
        return f"{hours}h{minutes % 60:02d}m"
    return f"{days}d{hours % 24}h"


class NodeClock(Struct, frozen=True):
    """A clock that gives Unix seconds when called: the real one at speed 1; a stand-in node's can run faster."""

    origin_unix_seconds: float = 0.0
    speed: float = 1.0
    """The node's seconds in a real one."""

    def __call__(self) -> float:
        return self.origin_unix_seconds + (time.time() - self.origin_unix_seconds) * self.speed

    def monotonic(self) -> float:
        """Seconds that never go back, from any origin."""
        return time.monotonic() * self.speed


REAL_TIME = NodeClock()
