"""The kernel's log of a stand-in node, in place of this machine's own: the lines of the file that its server names."""

from __future__ import annotations

from collections.abc import Sequence

from collectors.kernellog import KernelLogCollector, parse_text, with_rank
from collectors.simulated import DemoStates, is_simulated
from ranktop.sample import Event, NoData, Processes


class KernelLogOrSimulated:
    """The machine's kernel log, unless all servers seen are those of a stand-in node: then the lines that it tells.

    Those have an ISO 8601 time each. A kill is told with its rank, also after the rank is gone.
    """

    name = "kernellog"
    part = "events"
    server = None

    def __init__(self, real: KernelLogCollector, states: DemoStates) -> None:
        self._real = real
        self._states = states
        self._told: dict[str, int] = {}
        self._ranks: dict[int, tuple[str, str]] = {}

    @property
    def period_seconds(self) -> float:
        return self._real.period_seconds

    def read(self, processes: Processes | None, now: float) -> tuple[Event, ...]:
        """Events since the last look."""
        if processes is None:
            raise NoData("the processes were not looked at yet", "waiting")
        if not is_simulated(processes.servers):
            return self._real.read(processes, now)
        self._ranks |= {rank.pid: (rank.server, str(rank.tag)) for rank in processes.ranks}
        found: list[Event] = []
        for server in processes.servers:
            found += self._new(server.id, self._states.read(server).kernel_lines, now)
        return tuple(found)

    def _new(self, server: str, lines: Sequence[str], now: float) -> list[Event]:
        events = parse_text("\n".join(lines), at_unix_seconds=now)
        told = self._told.get(server, 0)
        self._told[server] = len(events)
        return [with_rank(event, self._ranks) for event in events[told:]]
