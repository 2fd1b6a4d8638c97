"""A scenario as data: what differs from the healthy node, and what a monitor must say of it."""

from __future__ import annotations

from msgspec import Struct

from ranktop.demo.traffic import Profile
from ranktop.finding import Severity


class Scenario(Struct, frozen=True):
    """Ranks are named by tp. Times are the node's seconds after ready."""

    name: str
    title: str
    findings: tuple[str, ...] = ()
    """Codes that must open (ranktop explain CODE)."""
    worst: Severity | None = None
    """None: nothing above info may open."""
    profile: Profile = Profile()
    primary_percent: dict[int, int] = {}
    """Size of a rank's primary pool, percent of the planned one."""
    exits: dict[int, float] = {}
    """When a rank ends by itself."""
    all_schedulers: bool = True
    """Whether every rank reports gauges (`--enable-metrics-for-all-schedulers`)."""
