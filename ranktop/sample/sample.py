"""Everything the collectors read at one instant: raw values and raw counters, nothing derived."""

from __future__ import annotations

from msgspec import Struct

from ranktop.sample.event import Event
from ranktop.sample.gpu import Gpus
from ranktop.sample.host import Cgroup, Host, NumaNode
from ranktop.sample.pool import Mapping, Placement
from ranktop.sample.process import Processes
from ranktop.sample.server import (
    Bootstrap,
    Connections,
    LoadSnapshot,
    MetricsPage,
    ModelConfig,
    RequestRecord,
    ServerInfo,
)
from ranktop.sample.source import SourceState
from ranktop.sample.storage import StorageDisk


class Sample(Struct, frozen=True):
    """One instant of one node. A part is None (or lacks an entry) until its source has answered.

    A part keeps its last value while its source fails; `sources` says how old it is.
    """

    at_unix_seconds: float
    at_monotonic_seconds: float
    host_name: str = ""
    sources: tuple[SourceState, ...] = ()
    processes: Processes | None = None
    host: Host | None = None
    numa: tuple[NumaNode, ...] | None = None
    cgroups: dict[int, Cgroup] = {}
    """By pid of the rank."""
    mappings: dict[int, tuple[Mapping, ...]] = {}
    """By pid of the rank; a pid is absent where its maps were not readable."""
    placements: dict[int, tuple[Placement, ...]] = {}
    gpus: Gpus | None = None
    metrics: dict[str, MetricsPage] = {}
    """By server id, as are `infos`, `loads`."""
    infos: dict[str, ServerInfo] = {}
    loads: dict[str, tuple[LoadSnapshot, ...]] = {}
    model_configs: dict[str, ModelConfig] = {}
    bootstraps: dict[str, Bootstrap] = {}
    connections: dict[str, Connections] = {}
    requests: dict[str, tuple[RequestRecord, ...]] = {}
    """Requests that finished since the read before."""
    multiproc: dict[str, MetricsPage] = {}
    """The server's own metric files read past its HTTP server; every series carries a `pid` label."""
    storage_disks: dict[str, StorageDisk] = {}
    routers: dict[str, MetricsPage] = {}
    """By the router's URL: its own metrics page."""
    events: tuple[Event, ...] = ()
    """Events since the sample before this one."""
