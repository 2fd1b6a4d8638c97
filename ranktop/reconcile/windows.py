"""Questions to a track of readings: how much it gained, and whether something held all along."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from ranktop.reconcile.history import History, LineKey, Track

_SLACK = 0.95
"""A window of 30 s of readings a second apart may span 29 s."""
_MOST_STEP_SHARE = 1 / 3
"""Readings farther apart than this share of a window leave it open whether anything happened between them."""


def span_seconds(track: Track) -> float:
    """Time from the first to the last reading."""
    return track.seconds[-1] - track.seconds[0] if track.seconds else 0.0


def covers(track: Track, seconds: float) -> bool:
    """Whether the readings span that long, but for the part of one step that a window cuts off."""
    span = span_seconds(track)
    if len(track.seconds) < 2:
        return bool(track.seconds) and seconds <= 0
    step = span / (len(track.seconds) - 1)
    return span >= _SLACK * seconds or span + min(step, _MOST_STEP_SHARE * seconds) >= seconds


def held(track: Track, seconds: float, holds: Callable[[float], bool]) -> bool:
    """Whether every reading of that long holds. False while less than that was seen."""
    return covers(track, seconds) and all(holds(value) for value in track.values)


def gained(track: Track) -> float:
    """What a counter gained: the sum of its rises, so that one that starts anew counts from 0."""
    values = track.values
    return sum(after - before if after >= before else after for before, after in pairwise(values))


def gained_lately(history: History, key: LineKey, seconds: float) -> int:
    """What a counter gained in so long a time, the newest reading included (long tracks are thin)."""
    long, newest = history.track(key, seconds), history.track(key, 0.0)
    return round(gained(Track(long.seconds + newest.seconds, long.values + newest.values)))


def steady_rate(track: Track, seconds: float) -> float | None:
    """A counter's least rate a second over each third of the window. None while less than that was seen."""
    if not covers(track, seconds) or len(track.values) < 4:
        return None
    step = (len(track.values) - 1) / 3
    marks = [round(step * third) for third in range(4)]
    rates: list[float] = []
    for first, last in pairwise(marks):
        elapsed = track.seconds[last] - track.seconds[first]
        if elapsed <= 0:
            return None
        rates.append((track.values[last] - track.values[first]) / elapsed)
    return min(rates)
