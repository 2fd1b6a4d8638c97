"""Which collectors run, and which of them share a thread because none can block the others for long.

A new collector is one file and one line here.
"""

from __future__ import annotations

from collections.abc import Sequence

from collectors.hostmem import HostMemCollector
from collectors.loads import LoadsCollector
from collectors.metrics import MetricsCollector
from collectors.nvml import NvmlCollector
from collectors.pools import PoolsCollector
from collectors.processes import ProcessesCollector
from collectors.server_info import ServerInfoCollector
from ranktop.sample import Collector, ServerProcess


def local_groups(
    *,
    proc_root: str,
    sys_root: str,
    only_pids: Sequence[int] = (),
    only_urls: Sequence[str] = (),
) -> list[list[Collector]]:
    """The host's own sources. Reading a command line or maps can wait for a rank's mmap lock: a thread each."""
    return [
        [ProcessesCollector(proc_root, only_pids=only_pids, only_urls=only_urls)],
        [HostMemCollector(proc_root)],
        [PoolsCollector(proc_root)],
        [NvmlCollector()],
    ]


def server_groups(server: ServerProcess, *, scrape_seconds: float) -> list[list[Collector]]:
    """The sources of one server: each can hang on its own."""
    if server.url is None:
        return []
    return [
        [ServerInfoCollector(server.id, server.url)],
        [MetricsCollector(server.id, server.url, scrape_seconds)],
        [LoadsCollector(server.id, server.url)],
    ]
