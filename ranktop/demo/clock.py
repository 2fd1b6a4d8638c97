"""The node's clocks: the real ones at speed 1, running faster otherwise."""

from __future__ import annotations

import time

from msgspec import Struct


class DemoClock(Struct, frozen=True):
    """A `Clock`: calling it gives unix seconds."""

    origin_unix_seconds: float = 0.0
    speed: float = 1.0
    """The node's seconds in a real one."""

    def __call__(self) -> float:
        return self.origin_unix_seconds + (time.time() - self.origin_unix_seconds) * self.speed

    def monotonic(self) -> float:
        """Seconds that never go back, from any origin."""
        return time.monotonic() * self.speed


REAL_TIME = DemoClock()
