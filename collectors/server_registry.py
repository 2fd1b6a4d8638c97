"""Which collectors read a server. Apart from `registry.py`, as a first screen needs the host and no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from collectors.bootstrap import BootstrapCollector
from collectors.connections import ConnectionsCollector
from collectors.l3disk import StorageDiskCollector
from collectors.loads import LoadsCollector
from collectors.metrics import MetricsCollector
from collectors.model_config import ModelConfigCollector
from collectors.multiproc import MultiprocCollector
from collectors.requests_log import RequestsCollector
from collectors.server_info import ServerInfoCollector
from collectors.serverlog import ServerLogCollector
from ranktop.sample import Collector, ServerProcess


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
