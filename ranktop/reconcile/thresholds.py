"""Every number that a rule compares with, in one place (the `[thresholds]` section of the configuration)."""

from __future__ import annotations

from msgspec import Struct


class Thresholds(Struct, frozen=True):
    """Defaults of findings.md."""

    pool_tolerance_ratio: float = 0.005
    """HOST-POOL-OVER/UNDER: share of the plan; one page a layer and huge page rounding are always allowed."""
    numa_far_percent: float = 5.0
    headroom_critical_seconds: float = 300.0
    """HOST-HEADROOM: time to the limit below which it is critical."""
    headroom_trend_seconds: float = 60.0
    """HOST-HEADROOM: the window over which the trend is taken."""
    headroom_trend_share: float = 0.10
    """HOST-HEADROOM: a trend counts only once less than this share of the limit is left."""
    close_after_updates: int = 3
    """A finding closes after it has been clear for so many updates of its slowest input."""
