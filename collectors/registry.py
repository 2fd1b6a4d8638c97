"""Which collectors run, and which of them share a thread because none can block the others for long.

A new collector is one file and one line here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from collectors.bootstrap import BootstrapCollector
from collectors.cgroup import CgroupCollector
from collectors.connections import ConnectionsCollector
from collectors.hostmem import HostMemCollector
from collectors.kernellog import KernelLogCollector
from collectors.l3disk import StorageDiskCollector
from collectors.loads import LoadsCollector
from collectors.metrics import MetricsCollector
from collectors.model_config import ModelConfigCollector
from collectors.multiproc import MultiprocCollector
from collectors.numa import NumaNodesCollector
from collectors.nvml import NvmlCollector
from collectors.nvml_session import NvmlSession
from collectors.placement import PlacementCollector
from collectors.pools import PoolsCollector
from collectors.processes import ProcessesCollector
from collectors.requests_log import RequestsCollector
from collectors.router import RouterCollector
from collectors.server_info import ServerInfoCollector
from collectors.serverlog import ServerLogCollector
from collectors.simulated import DemoStates, OrSimulated
from collectors.simulated_kernel import KernelLogOrSimulated
from collectors.xid import XidCollector
from ranktop.sample import Collector, ServerProcess


def local_groups(
    *,
    proc_root: str,
    sys_root: str,
    only_pids: Sequence[int] = (),
    only_urls: Sequence[str] = (),
    session: NvmlSession | None = None,
    router_urls: Sequence[str] = (),
) -> Sequence[Sequence[Collector]]:
    """The host's own sources. Reading a command line or maps can wait for a rank's mmap lock: a thread each.

    What a stand-in node simulates takes the place of this machine's own hardware while only stand-ins are watched.
    """
    states = DemoStates(proc_root)
    pools = PoolsCollector(proc_root)
    placement = PlacementCollector(lambda: pools.latest)
    session = session or NvmlSession(proc_root=proc_root)
    return [
        [ProcessesCollector(proc_root, only_pids=only_pids, only_urls=only_urls)],
        [
            OrSimulated(HostMemCollector(proc_root, sys_root), lambda state: state.host, states),
            OrSimulated(NumaNodesCollector(sys_root, proc_root), lambda state: state.numa, states),
            OrSimulated(CgroupCollector(proc_root, sys_root), lambda state: state.cgroups, states),
        ],
        [pools],
        [OrSimulated(placement, lambda state: state.placements, states)],
        [OrSimulated(NvmlCollector(session, sys_root=sys_root), lambda state: state.gpus, states)],
        [XidCollector(session)],
        [KernelLogOrSimulated(KernelLogCollector(), states)],
        *([RouterCollector(url)] for url in router_urls),
    ]


def server_groups(
    server: ServerProcess,
    *,
    scrape_seconds: float,
    proc_root: str = "/proc",
    log_path: str | None = None,
    log_command: str | None = None,
) -> Sequence[Sequence[Collector]]:
    """The sources of one server: each can hang on its own."""
    groups: list[Sequence[Collector]] = []
    if server.pid is not None:
        groups += [
            [ModelConfigCollector(server.id, proc_root), ConnectionsCollector(server.id, proc_root)],
            [RequestsCollector(server.id, proc_root=proc_root), StorageDiskCollector(server.id, proc_root)],
            [BootstrapCollector(server.id)],
        ]
    if server.pid is not None or log_path or log_command:
        path = Path(log_path) if log_path else None
        groups.append([ServerLogCollector(server.id, path, log_command, Path(proc_root))])
    if server.url is not None:
        metrics = MetricsCollector(server.id, server.url, scrape_seconds, serves=server.demo_state_path is None)
        groups += [
            [ServerInfoCollector(server.id, server.url)],
            [metrics],
            [LoadsCollector(server.id, server.url)],
        ]
        if server.pid is not None:
            groups.append([MultiprocCollector(server.id, lambda: metrics.is_failing, proc_root)])
    return groups
