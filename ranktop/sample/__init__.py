"""The types of what is read: frozen, typed, units in names, `None` = not seen.

A package and not one file, because the types of a host, a GPU, a process, a pool, a server and an event are six ideas.
"""

from ranktop.sample.event import Event
from ranktop.sample.fields import Field, fields_of
from ranktop.sample.gpu import Gpu, GpuProcess, Gpus, MigInstance
from ranktop.sample.host import Cgroup, Host, HugePages, NumaNode, Pressure
from ranktop.sample.own import Asked, OwnUse
from ranktop.sample.pool import Mapping, MappingKind, Placement, share_interval_percent
from ranktop.sample.process import Processes, RankProcess, RankTag, ServerProcess
from ranktop.sample.protocols import Clock, Collector, GpuHold, SampleFeed, TimeControl
from ranktop.sample.sample import Sample
from ranktop.sample.server import (
    Bootstrap,
    BootstrapRank,
    Connections,
    LoadSnapshot,
    MetricsPage,
    ModelConfig,
    RequestRecord,
    SeriesKey,
    ServerInfo,
)
from ranktop.sample.source import NoData, SourceError, SourceState, State
from ranktop.sample.storage import StorageDisk

__all__ = [
    "Asked",
    "Bootstrap",
    "BootstrapRank",
    "Cgroup",
    "Clock",
    "Collector",
    "Connections",
    "Event",
    "Field",
    "Gpu",
    "GpuHold",
    "GpuProcess",
    "Gpus",
    "Host",
    "HugePages",
    "LoadSnapshot",
    "Mapping",
    "MappingKind",
    "MetricsPage",
    "MigInstance",
    "ModelConfig",
    "NoData",
    "NumaNode",
    "OwnUse",
    "Placement",
    "Pressure",
    "Processes",
    "RankProcess",
    "RankTag",
    "RequestRecord",
    "Sample",
    "SampleFeed",
    "SeriesKey",
    "ServerInfo",
    "ServerProcess",
    "SourceError",
    "SourceState",
    "State",
    "StorageDisk",
    "TimeControl",
    "fields_of",
    "share_interval_percent",
]
