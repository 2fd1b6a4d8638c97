"""SGLang's processes on this node: one main process a server, one scheduler a rank.

Ranks are told by their titles (`sglang::scheduler_DP0_TP3`), servers by their own command line or as the parent of
ranks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from operator import itemgetter

from collectors import procfs
from collectors.process_table import Main, ProcessTable, Rank, link
from collectors.procfs import line_value
from ranktop.sample import Processes, ServerProcess, SourceError

_LIMITS_EVERY = 30


class ProcessesCollector:
    """Servers and ranks from `/proc`. `only_pids` and `only_urls` keep to servers with that main pid or URL."""

    name = "processes"
    part = "processes"
    server = None
    period_seconds = 1.0

    def __init__(
        self,
        proc_root: str | os.PathLike[str] = "/proc",
        *,
        only_pids: Iterable[int] = (),
        only_urls: Iterable[str] = (),
    ) -> None:
        self._root = os.fspath(proc_root)
        self._asked = tuple(only_pids)
        self._only_pids = frozenset(self._asked)
        self._only_urls = frozenset(url.rstrip("/").replace("//localhost", "//127.0.0.1") for url in only_urls)
        self._table: ProcessTable | None = None
        self._ids: dict[int, str] = {}
        self._boot_unix_seconds: float | None = None
        self._reads = 0

    def read(self, processes: Processes | None, now: float) -> Processes:
        """All servers and ranks now, ranks in rank order within their server."""
        self._reads += 1
        try:
            if self._table is None:
                self._table = ProcessTable(self._root)
                self._boot_unix_seconds = boot_time(procfs.read_file(f"{self._root}/stat"))
            self._table.refresh(with_limits=self._reads % _LIMITS_EVERY == 0)
        except OSError as error:
            raise SourceError(f"{self._root}: {error.strerror} (is /proc mounted there?)", "unreadable") from error
        mains = self._table.mains
        network = link(f"{self._root}/self/ns/net")
        self._ids = server_ids(mains.values(), self._ids, network)
        servers = [
            server_process(main, self._ids[pid], network, self._table.untitled_children(pid))
            for pid, main in sorted(mains.items())
            if self._is_wanted(main)
        ]
        wanted = [
            (self._server_of(rank), rank.order, rank.pid, rank)
            for rank in self._table.ranks.values()
            if self._is_wanted(rank.main) or rank.pid in self._only_pids
        ]
        return Processes(
            servers=tuple(servers),
            ranks=tuple([rank.process(server) for server, _, _, rank in sorted(wanted, key=itemgetter(0, 1, 2))]),
            boot_unix_seconds=self._boot_unix_seconds,
            ticks_per_second=os.sysconf("SC_CLK_TCK"),
            only_pids=self._asked,
        )

    def _server_of(self, rank: Rank) -> str:
        """An orphan keeps the server it had; one never seen with a server is named by its process group."""
        if rank.main is not None:
            rank.server_id = self._ids.get(rank.main.pid) or rank.server_id or f"pid:{rank.main.pid}"
        elif rank.server_id is None:
            rank.server_id = f"pid:{rank.process_group}"
        return rank.server_id

    def _is_wanted(self, main: Main | None) -> bool:
        """Of the chosen servers, if some were chosen; ranks stay chosen when their server is gone."""
        if not self._only_pids and not self._only_urls:
            return True
        return main is not None and (main.pid in self._only_pids or main.url in self._only_urls)


def server_ids(mains: Iterable[Main], before: Mapping[int, str], own_net_namespace: str | None) -> dict[int, str]:
    """`host:port` for every main process that alone can be reached there from here, else `pid:N`.

    Servers in other network namespaces can listen on the same address. Of those that share one, the address names the
    server in the reader's namespace; among these one that is not a zombie, then the one that had the name, then the
    youngest.
    """
    by_address: dict[str, list[Main]] = {}
    ids: dict[int, str] = {}
    for main in mains:
        ids[main.pid] = f"pid:{main.pid}"
        if main.address is not None:
            by_address.setdefault(main.address, []).append(main)
    for address, sharing in by_address.items():
        if len(sharing) > 1:
            sharing = [main for main in sharing if main.net_namespace == own_net_namespace]
        if sharing:
            best = max(
                sharing,
                key=lambda main: (main.stat.state != "Z", before.get(main.pid) == address, main.stat.start_ticks),
            )
            ids[best.pid] = address
    return ids


def server_process(main: Main, id: str, own_network: str | None, untitled_children: int) -> ServerProcess:
    """The sample of one main process. Without its address as id it cannot be reached at its URL from here."""
    return ServerProcess(
        id=id,
        pid=main.pid,
        start_ticks=main.stat.start_ticks,
        argv=main.argv,
        state=main.stat.state,
        url=main.url if id == main.address else None,
        demo_state_path=main.demo_state_path,
        own_network=main.net_namespace == own_network if main.net_namespace and own_network else None,
        untitled_children=untitled_children,
    )


def boot_time(stat: bytes) -> float | None:
    """`btime` of `/proc/stat`, in seconds since 1970."""
    value = line_value(stat, b"btime ")
    return float(value) if value is not None and value.isdigit() else None
