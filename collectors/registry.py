"""Which collectors read the host, and which of them share a thread because none can block the others for long.

A new collector is one file and one line: here, or in `server_registry.py` for what a server says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from collectors.cgroup import CgroupCollector
from collectors.hostmem import HostMemCollector
from collectors.kernellog import KernelLogCollector
from collectors.numa import NumaNodesCollector
from collectors.nvml import NvmlCollector
from collectors.nvml_session import NvmlSession
from collectors.placement import PlacementCollector
from collectors.pools import PoolsCollector
from collectors.processes import ProcessesCollector
from collectors.simulated import DemoStates, OrSimulated
from collectors.simulated_kernel import KernelLogOrSimulated
from collectors.xid import XidCollector
from ranktop.sample import Collector


class LocalGroups(NamedTuple):
    """The host's sources: those that a first screen needs, and those that it can do without."""

    first: Sequence[Sequence[Collector]]
    later: Sequence[Sequence[Collector]]


def local_groups(
    *,
    proc_root: str,
    sys_root: str,
    only_pids: Sequence[int] = (),
    only_urls: Sequence[str] = (),
    session: NvmlSession | None = None,
) -> LocalGroups:
    """The host's own sources. Reading a command line or maps can wait for a rank's mmap lock: a thread each.

    What a stand-in node simulates takes the place of this machine's own hardware while only stand-ins are watched.
    """
    states = DemoStates(proc_root)
    pools = PoolsCollector(proc_root)
    placement = PlacementCollector(lambda: pools.latest)
    session = session or NvmlSession(proc_root=proc_root)
    first = [
        [ProcessesCollector(proc_root, only_pids=only_pids, only_urls=only_urls)],
        [
            OrSimulated(HostMemCollector(proc_root, sys_root), lambda state: state.host, states),
            OrSimulated(NumaNodesCollector(sys_root, proc_root), lambda state: state.numa, states),
            OrSimulated(CgroupCollector(proc_root, sys_root), lambda state: state.cgroups, states),
        ],
        [pools],
        [OrSimulated(NvmlCollector(session, sys_root=sys_root), lambda state: state.gpus, states)],
    ]
    later = [
        [OrSimulated(placement, lambda state: state.placements, states)],
        [XidCollector(session)],
        [KernelLogOrSimulated(KernelLogCollector(), states)],
    ]
    return LocalGroups(first, later)
