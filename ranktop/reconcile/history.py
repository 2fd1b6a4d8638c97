"""Values of chosen lines over time, thin enough to keep for hours."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping

from msgspec import Struct

LineKey = tuple[str, str, str]
"""(server id, rank tag, line name); a server's own values have an empty rank, the node's an empty server, too."""

STEP_SECONDS = 10.0
KEEP_SECONDS = 3 * 3600.0
_FINE_SECONDS = 120.0
_SLACK = 1.25


class Track(Struct, frozen=True):
    """One value over time: monotonic seconds and values, oldest first."""

    seconds: tuple[float, ...]
    values: tuple[float, ...]


class _Kept:
    """Tracks of one fineness: a point every `step_seconds` at most, for `keep_seconds` and a little longer."""

    def __init__(self, step_seconds: float, keep_seconds: float) -> None:
        self._step_seconds = step_seconds
        self._keep_seconds = keep_seconds
        self._last = self._swept = -math.inf
        self.tracks: dict[LineKey, tuple[array[float], array[float]]] = {}

    def is_due(self, now: float) -> bool:
        return not 0 <= now - self._last < self._step_seconds

    def add(self, now: float, values: Mapping[LineKey, float]) -> None:
        self._last = now
        for key, value in values.items():
            track = self.tracks.get(key)
            if track is None:
                track = self.tracks[key] = (array("d"), array("d"))
            seconds, kept = track
            seconds.append(now)
            kept.append(value)
            # In slices, as a shift of the whole array at every point is waste.
            if now - seconds[0] > self._keep_seconds * _SLACK:
                stale = bisect_left(seconds, now - self._keep_seconds)
                del seconds[:stale]
                del kept[:stale]
        if not 0 <= now - self._swept < self._keep_seconds * (_SLACK - 1):
            self._swept = now
            for key in [key for key, (seconds, _) in self.tracks.items() if now - seconds[-1] > self._keep_seconds]:
                del self.tracks[key]


class History:
    """Every second for two minutes, every ten seconds for three hours; 16 bytes a point.

    A gap in the readings is a gap here: nothing is filled in.
    """

    def __init__(self) -> None:
        self._fine = _Kept(0.0, _FINE_SECONDS)
        self._coarse = _Kept(STEP_SECONDS, KEEP_SECONDS)
        self._seldom: Mapping[LineKey, float] = {}

    def record(
        self, now: float, values: Mapping[LineKey, float], seldom: Callable[[], Mapping[LineKey, float]] = dict
    ) -> None:
        """Add one instant. Keys that stay away for the whole window are forgotten.

        `seldom` gives what is kept every ten seconds alone, and is asked then.
        """
        self._fine.add(now, values)
        if self._coarse.is_due(now):
            self._seldom = seldom()
            self._coarse.add(now, {**values, **self._seldom})

    def track(self, key: LineKey, window_seconds: float) -> Track:
        """The last `window_seconds` of a line, as fine as it is kept. Empty when it was never seen."""
        kept = self._fine if window_seconds <= _FINE_SECONDS and key not in self._seldom else self._coarse
        seconds, values = kept.tracks.get(key, (array("d"), array("d")))
        if not seconds:
            return Track((), ())
        first = bisect_left(seconds, seconds[-1] - window_seconds)
        return Track(tuple(seconds[first:]), tuple(values[first:]))
