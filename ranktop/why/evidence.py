"""What was found of the time of a death. Times are Unix seconds, sizes bytes; None is not known."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ranktop.plan import LaunchRequest, Plan
from ranktop.reconcile.launches import Launch
from ranktop.reconcile.logged import LoggedServer
from ranktop.sample import Event, RankProcess


class Reading(Struct, frozen=True):
    """How one source fared. `absent` is ordinary, `failed` hides something; `detail` says what came back."""

    source: str
    state: Literal["read", "absent", "failed"]
    detail: str = ""


class KernelLog(Struct, frozen=True):
    """Kernel messages of one source, oldest first."""

    source: str
    events: tuple[Event, ...]


class Remains(Struct, frozen=True):
    """A cgroup that counts kills. It outlives the processes, a pod's also its containers."""

    path: str
    oom_kill_count: int
    own_oom_count: int | None = None
    """Times that this cgroup's own limit was the reason (`oom` of memory.events.local); None on old kernels."""
    limit_bytes: int | None = None
    limit_path: str | None = None
    peak_bytes: int | None = None
    current_bytes: int | None = None
    oom_group: bool | None = None
    pod: str | None = None
    """`namespace/name`, or the pod's UID."""
    has_processes: bool | None = None


class Killed(Struct, frozen=True):
    """A process that a shell or its parent saw end by SIGKILL (`signal` 9), or with another status."""

    at_unix_seconds: float
    pid: int
    text: str
    is_sigkill: bool


class ServerLog(Struct, frozen=True):
    """One log file: its events, the ends of processes that it tells, and what its last start logged."""

    source: str
    events: tuple[Event, ...]
    killed: tuple[Killed, ...] = ()
    logged: LoggedServer = LoggedServer()


class Growth(Struct, frozen=True):
    """How much more own memory (RssAnon) a rank held at the end of a recording than `seconds` before."""

    server: str
    rank: str
    pid: int
    growth_bytes: int
    seconds: float


class Recorded(Struct, frozen=True):
    """The minutes of one recording around its newest death, or its last ones."""

    source: str
    events: tuple[Event, ...] = ()
    gone: tuple[tuple[float, RankProcess], ...] = ()
    """Ranks that vanished during it, with the time at which they were missed."""
    ranks: tuple[RankProcess, ...] = ()
    """All ranks that were seen."""
    growths: tuple[Growth, ...] = ()
    available_lost_bytes: int | None = None
    """What MemAvailable fell by in the same time."""
    available_bytes: int | None = None
    limit_bytes: int | None = None
    limit_path: str | None = None
    plans: tuple[tuple[str, Plan], ...] = ()
    """By server."""
    since_unix_seconds: float = 0.0
    """The first of these minutes that was recorded."""


class Series(Struct, frozen=True):
    """One series that a Prometheus server answered with."""

    query: str
    labels: str
    value: float


class Evidence(Struct, frozen=True):
    """Everything that was found."""

    readings: tuple[Reading, ...] = ()
    kernel: tuple[KernelLog, ...] = ()
    kernel_since_unix_seconds: float | None = None
    """From when on this node's kernel messages were asked for and could be read."""
    remains: tuple[Remains, ...] = ()
    logs: tuple[ServerLog, ...] = ()
    recordings: tuple[Recorded, ...] = ()
    orphans: tuple[RankProcess, ...] = ()
    series: tuple[Series, ...] = ()
    launch: LaunchRequest | None = None
    """The launch that the user named."""
    launches: tuple[Launch, ...] = ()
    """Launches remembered by earlier runs of ranktop."""
    host_total_bytes: int | None = None
    node_total_bytes: dict[int, int] = {}
    """By NUMA node."""
    kills_since_boot: int | None = None
    """`oom_kill` of /proc/vmstat: of anybody on this host."""
