"""A straight line through readings: how fast, and how straight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MIN_POINTS = 5


class Trend(NamedTuple):
    """Least squares: value a second, and r2 (1 is a perfect line, 0 is none)."""

    per_second: float
    r2: float


def trend(seconds: Sequence[float], values: Sequence[float]) -> Trend | None:
    """None for too few points or no time between them."""
    count = len(seconds)
    if count < MIN_POINTS:
        return None
    mean_time, mean_value = sum(seconds) / count, sum(values) / count
    spread = sum((at - mean_time) ** 2 for at in seconds)
    if spread == 0:
        return None
    together = sum((at - mean_time) * (value - mean_value) for at, value in zip(seconds, values, strict=True))
    slope = together / spread
    deviation = sum((value - mean_value) ** 2 for value in values)
    return Trend(slope, slope * together / deviation if deviation else 0.0)
