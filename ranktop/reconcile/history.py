"""Values of chosen lines over time, thin enough to keep for hours."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from msgspec import Struct

LineKey = tuple[str, str, str]
"""(server id, rank tag, line name); the node's own lines have empty server and rank."""

STEP_SECONDS = 10.0
KEEP_SECONDS = 3 * 3600.0
_FINE_SECONDS = 120.0


class Track(Struct, frozen=True):
    """One value over time: monotonic seconds and values, oldest first."""

    seconds: tuple[float, ...]
    values: tuple[float, ...]


class History:
    """Every second for two minutes, every ten seconds for three hours; 16 bytes a point.

    A gap in the readings is a gap here: nothing is filled in.
    """

    def __init__(self) -> None:
        self._fine: dict[LineKey, tuple[array[float], array[float]]] = {}
        self._coarse: dict[LineKey, tuple[array[float], array[float]]] = {}

    def record(self, now: float, values: Mapping[LineKey, float]) -> None:
        """Add one instant. Keys that stay away for the whole window are forgotten."""
        for key, value in values.items():
            _append(self._fine, key, now, value, 0.0, _FINE_SECONDS)
            _append(self._coarse, key, now, value, STEP_SECONDS, KEEP_SECONDS)
        for tracks, keep in ((self._fine, _FINE_SECONDS), (self._coarse, KEEP_SECONDS)):
            for key in [key for key, (seconds, _) in tracks.items() if now - seconds[-1] > keep]:
                del tracks[key]

    def track(self, key: LineKey, window_seconds: float) -> Track:
        """The last `window_seconds` of a line, as fine as it is kept. Empty when it was never seen."""
        tracks = self._fine if window_seconds <= _FINE_SECONDS else self._coarse
        seconds, values = tracks.get(key, (array("d"), array("d")))
        if not seconds:
            return Track((), ())
        start = seconds[-1] - window_seconds
        first = next((index for index, at in enumerate(seconds) if at >= start), 0)
        return Track(tuple(seconds[first:]), tuple(values[first:]))


def _append(
    tracks: dict[LineKey, tuple[array[float], array[float]]],
    key: LineKey,
    now: float,
    value: float,
    step: float,
    keep: float,
) -> None:
    seconds, values = tracks.setdefault(key, (array("d"), array("d")))
    if seconds and now - seconds[-1] < step:
        return
    seconds.append(now)
    values.append(value)
    stale = 0
    while now - seconds[stale] > keep:
        stale += 1
    # In slices, as a shift of the whole array every second is waste.
    if stale > 64:
        del seconds[:stale]
        del values[:stale]
