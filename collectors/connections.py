"""TCP connections of a server's network namespace, by listening port: clients at the door, peers of a rank's port.

`/proc/PID/net/tcp` and `tcp6` (proc(5)): what the kernel counts goes on while a scheduler and its gauges hang.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from collectors.procfs import read_file
from ranktop.sample import Connections, NoData, Processes

MAX_BYTES = 8 << 20
"""About 50,000 connections; further ones are not counted."""

_ESTABLISHED, _LISTEN = b"01", b"0A"


class ConnectionsCollector:
    """Counts one server's connections through its main process."""

    name = "connections"
    part = "connections"

    def __init__(self, server: str, proc_root: str = "/proc", period_seconds: float = 5.0) -> None:
        self.server: str | None = server
        self._id = server
        self._proc_root = proc_root
        self.period_seconds = period_seconds

    def read(self, processes: Processes | None, now: float) -> Connections:
        """Established connections by listening port. NoData where the main process is not seen or not readable."""
        main = next((main for main in processes.servers if main.id == self._id), None) if processes else None
        if main is None or main.pid is None:
            raise NoData(f"connections of {self._id}: its main process is not seen here", "no_process")
        folder = f"{self._proc_root}/{main.pid}"
        tables: list[bytes] = []
        for name in ("tcp", "tcp6"):
            try:
                tables.append(read_file(f"{folder}/net/{name}", MAX_BYTES))
            except OSError:
                continue
        if not tables:
            raise NoData(f"connections of {self._id}: {folder}/net is not readable (run as its owner)", "no_permission")
        return Connections(self._id, established_by_port(tables), is_other_network(main.pid, self._proc_root))


def is_other_network(pid: int, proc_root: str = "/proc") -> bool | None:
    """Whether a process lives in another network namespace than ranktop. None where that is not readable."""
    try:
        return os.readlink(f"{proc_root}/{pid}/ns/net") != os.readlink(f"{proc_root}/self/ns/net")
    except OSError:
        return None


def established_by_port(tables: Iterable[bytes]) -> dict[int, int]:
    """Established connections of each local port that listens. A line that cannot be read is passed over."""
    established: dict[int, int] = {}
    listening: set[int] = set()
    for table in tables:
        for line in table.split(b"\n")[1:]:
            words = line.split(None, 4)
            if len(words) < 5:
                continue
            try:
                port = int(words[1].rpartition(b":")[2], 16)
            except ValueError:
                continue
            if words[3] == _ESTABLISHED:
                established[port] = established.get(port, 0) + 1
            elif words[3] == _LISTEN:
                listening.add(port)
    return {port: established.get(port, 0) for port in sorted(listening)}
