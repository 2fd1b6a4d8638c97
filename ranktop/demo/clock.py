"""The node's time of day: the real one at speed 1, running faster from its origin otherwise."""

from __future__ import annotations

import time

from msgspec import Struct


class DemoClock(Struct, frozen=True):
    """A `Clock`: calling it gives unix seconds."""

    origin_unix_seconds: float
    speed: float = 1.0

    def __call__(self) -> float:
        return self.origin_unix_seconds + (time.time() - self.origin_unix_seconds) * self.speed
