"""A scenario as data: what differs from the healthy node, and what a monitor must say of it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ranktop.demo.launch import Launch
from ranktop.demo.traffic import Profile
from ranktop.finding import Severity


class Event(Struct, frozen=True):
    """Something that happens `after_seconds` from ready, and again every `every_seconds`."""

    after_seconds: float
    action: Literal["log", "exit", "oom_kill", "grow"]
    """`exit`: the rank ends, `text` is its exception. `grow`: its heap grows by `grow_bytes`."""
    tp: int | None = None
    """The rank it happens to; a line without one has no tag."""
    text: str = ""
    grow_bytes: int = 0
    every_seconds: float | None = None
    times: int | None = None
    """How often a repeated event happens at most."""


class GaugeOverride(Struct, frozen=True):
    """From then on a gauge of every reporting rank says this instead."""

    name: str
    value: float
    after_seconds: float = 0.0


class HostScript(Struct, frozen=True):
    """The host beside the pools, in real GB (1e9) and at the real host's size."""

    total_gb: float = 1511.0
    other_gb: float = 14.0
    growth_gb_per_minute: float = 0.0
    pressure_percent: float = 0.0
    """PSI `some`; `full` is half of it."""
    after_seconds: float = 0.0
    """When growth and pressure begin."""
    pod_limit_gb: float | None = None
    """Memory limit of the pod that the ranks run in."""
    other_on_node: int | None = None
    """The NUMA node that holds what else is in use; None: spread over all."""


class Scenario(Struct, frozen=True):
    """Ranks are named by tp. Times are the node's seconds after ready."""

    name: str
    title: str
    findings: tuple[str, ...] = ()
    """Codes that must open (ranktop explain CODE)."""
    may_follow: tuple[str, ...] = ()
    """Codes above info that may open besides, as effects of those."""
    worst: Severity | None = None
    """The worst severity that may open. None: nothing above info."""
    shows_after_seconds: float = 15.0
    """Node seconds after ready by which all of `findings` can be known."""
    launch: Launch = Launch()
    args: dict[str, object] = {}
    """Resolved server arguments that differ from the healthy node's."""
    earlier_args: tuple[dict[str, object], ...] = ()
    """What earlier launches in the same log had differently, oldest first."""
    profile: Profile = Profile()
    primary_percent: dict[int, int] = {}
    """Size of a rank's primary pool, percent of the planned one."""
    pools_made: dict[int, int] = {}
    """How many of its two pools (primary, indexer) a rank gets to map."""
    unregistered: frozenset[int] = frozenset()
    """Ranks that never register with the bootstrap server of a prefill worker."""
    never_ready: bool = False
    """The server never listens and logs no ready line; times count from when its ranks have started."""
    orphan: int | None = None
    """The GPU on which a rank of an earlier server lives on, without its parent."""
    far_percent: dict[int, float] = {}
    """Share of a rank's pools on the node that is not its GPU's."""
    layers_early: dict[int, int] = {}
    """Layers by which the range that a rank logs begins too early (LayerSplit)."""
    events: tuple[Event, ...] = ()
    gauges: tuple[GaugeOverride, ...] = ()
    host: HostScript = HostScript()
    relaunch: str | None = None
    """The scenario that takes this one's place on the same port."""
    relaunch_after_seconds: float = 0.0
    hangs_after_seconds: float | None = None
    """When the schedulers stop: requests still arrive, nothing is reported or logged any more."""
