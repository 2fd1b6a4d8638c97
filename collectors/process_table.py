"""The table of SGLang's processes: found by their command lines, followed through open files.

`/proc/PID/cmdline` and `environ` take the memory lock of that process, so they are read once; `stat`, `status` and
`comm` do not, and can be read every second. Of a rank that is `status` alone: what only `stat` tells never changes.
"""

from __future__ import annotations

import os

from collectors import cmdline, procfs
from collectors.discovery import NewPids, Watchlist
from collectors.procfs import KeptFile, Stat
from collectors.status import StatusReader, parse_status
from ranktop.sample import RankProcess, RankTag

_MAX_ANCESTORS = 16
_CMDLINE_BYTES = 1 << 18
_ENVIRON_BYTES = 1 << 18
DEMO_STATE_VARIABLE = "RANKTOP_DEMO_STATE"
CUDA_DEVICES_VARIABLE = "CUDA_VISIBLE_DEVICES"


class Main:
    """A server's main process: its command line as it was found, its state as of the last refresh."""

    def __init__(self, root: str, pid: int, argv: tuple[str, ...]) -> None:
        self.pid = pid
        self._file = KeptFile(f"{root}/{pid}/stat")
        stat = procfs.parse_stat(self._file.read())
        if stat is None:
            raise ProcessLookupError(pid)
        self.stat: Stat = stat
        self.argv = cmdline.drop_secrets(argv)
        self.is_launch = cmdline.is_launch(argv)
        self.url = cmdline.url_of(argv) if self.is_launch or cmdline.option(argv, "--port") else None
        host, port = cmdline.endpoint(argv)
        self.address = f"{host}:{port}" if self.url else None
        self.net_namespace = link(f"{root}/{pid}/ns/net")
        environ = try_read(f"{root}/{pid}/environ", _ENVIRON_BYTES)
        self.demo_state_path = procfs.environ_value(environ, DEMO_STATE_VARIABLE)
        self.cuda_visible_devices = procfs.environ_value(environ, CUDA_DEVICES_VARIABLE)

    def refresh(self) -> bool:
        """Read the state again; False when the process is gone."""
        try:
            stat = procfs.parse_stat(self._file.read())
        except OSError:
            return False
        self.stat = stat or self.stat
        return stat is not None


class Rank:
    """A scheduler process, and the server it belongs or belonged to."""

    def __init__(self, root: str, pid: int, tag: RankTag) -> None:
        self.pid = pid
        self.tag = tag
        self.order = tag.order
        self._status = KeptFile(f"{root}/{pid}/status")
        stat = procfs.parse_stat(procfs.read_file(f"{root}/{pid}/stat"))
        if stat is None:
            raise ProcessLookupError(pid)
        self.start_ticks = stat.start_ticks
        self.process_group = stat.process_group
        self._status_reader = StatusReader()
        self._limits_path = f"{root}/{pid}/limits"
        environ = try_read(f"{root}/{pid}/environ", _ENVIRON_BYTES)
        self._own_cuda_visible_devices = procfs.environ_value(environ, CUDA_DEVICES_VARIABLE)
        self.parent_pid: int | None = None
        self.main: Main | None = None
        self.is_orphan = False
        self.server_id: str | None = None
        self.status = parse_status(b"")
        self.memlock_limit_bytes: int | None = None
        self._made_of: tuple[object, ...] = ()
        self._process: RankProcess | None = None

    @property
    def cuda_visible_devices(self) -> str | None:
        """Its own at exec, else its server's: setproctitle overwrites the environment of a process it gives a title."""
        inherited = self.main.cuda_visible_devices if self.main is not None else None
        return self._own_cuda_visible_devices or inherited

    def refresh(self, *, with_limits: bool) -> bool:
        """Read the status again; False when the process is gone."""
        try:
            self.status = self._status_reader.read(self._status.read_once())
        except OSError:
            return False
        if with_limits or self.memlock_limit_bytes is None:
            self.memlock_limit_bytes = procfs.parse_memlock_limit(try_read(self._limits_path, 1 << 14))
        return True

    def process(self, server: str) -> RankProcess:
        """Its sample as of the last refresh, the same object while all of it stands still."""
        status = self.status
        made_of = (server, status, self.memlock_limit_bytes, self.cuda_visible_devices, self.is_orphan)
        if self._process is None or made_of != self._made_of:
            self._made_of = made_of
            self._process = RankProcess(
                server=server,
                tag=self.tag,
                pid=self.pid,
                start_ticks=self.start_ticks,
                state=status.state,
                parent_pid=status.parent_pid,
                rss_anon_bytes=status.rss_anon_bytes,
                rss_file_bytes=status.rss_file_bytes,
                rss_shmem_bytes=status.rss_shmem_bytes,
                hugetlb_bytes=status.hugetlb_bytes,
                vm_size_bytes=status.vm_size_bytes,
                vm_hwm_bytes=status.vm_hwm_bytes,
                vm_pin_bytes=status.vm_pin_bytes,
                vm_locked_bytes=status.vm_locked_bytes,
                cpus_allowed=status.cpus_allowed,
                mems_allowed=status.mems_allowed,
                memlock_limit_bytes=self.memlock_limit_bytes,
                cuda_visible_devices=self.cuda_visible_devices,
                orphan=self.is_orphan,
                namespace_pids=status.namespace_pids,
            )
        return self._process


class ProcessTable:
    """Main processes and ranks by pid. `refresh` raises OSError when `/proc` cannot be listed."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._new_pids = NewPids(root)
        self._watchlist = Watchlist()
        self._comms: dict[str, bytes] = {}
        self._untitled: dict[str, int] = {}
        self.mains: dict[int, Main] = {}
        self.ranks: dict[int, Rank] = {}

    def refresh(self, *, with_limits: bool) -> None:
        """Look at what is new, look again at what may have changed, read the state of what is known."""
        for name in self._new_pids.next():
            self._drop(name)
            self._look(name)
        for name in self._watchlist.due():
            self._look_again(name)
        for pid, main in list(self.mains.items()):
            if not main.refresh():
                del self.mains[pid]
        self._drop_forked_copies()
        for pid, rank in list(self.ranks.items()):
            if rank.refresh(with_limits=with_limits):
                self._follow_parent(rank, rank.status.parent_pid or 0)
            else:
                self._forget(str(pid))

    def untitled_children(self, pid: int) -> int:
        """How many spawned children of this process have no title yet."""
        return sum(parent == pid for parent in self._untitled.values())

    def _look(self, name: str) -> None:
        """Classify a process from its command line."""
        raw = try_read(f"{self._root}/{name}/cmdline", _CMDLINE_BYTES)
        self._untitled.pop(name, None)
        pid = int(name)
        eager = False
        try:
            if pid in self.mains or b"sglang" in raw or b"multiprocessing.spawn" in raw:
                argv = cmdline.split_argv(raw)
                tag = cmdline.rank_tag(argv[0]) if argv else None
                if tag is not None:
                    if pid not in self.ranks:
                        self.ranks[pid] = Rank(self._root, pid, tag)
                    self._watchlist.forget(name)
                    return
                eager = not self._is_main(pid, argv)
                if eager and cmdline.is_spawned_child(argv):
                    stat = procfs.parse_stat(procfs.read_file(f"{self._root}/{name}/stat"))
                    self._untitled[name] = stat.parent_pid if stat else 0
        except OSError:
            self._forget(name)
            return
        self._watchlist.watch(name, eager=eager)

    def _is_main(self, pid: int, argv: tuple[str, ...]) -> bool:
        """Keep the table's main processes in step with what this pid now runs."""
        is_launch = cmdline.is_launch(argv)
        if is_launch:
            self._main(pid, argv)
        elif pid in self.mains and self.mains[pid].is_launch:
            del self.mains[pid]
        return is_launch

    def _look_again(self, name: str) -> None:
        """Read the short name; the command line only when that changed, or at the second look (fork, then exec)."""
        comm = try_read(f"{self._root}/{name}/comm", 64)
        looks = self._watchlist.looks(name)
        if not comm:
            self._forget(name)
        elif comm != self._comms.get(name) or looks == 1:
            self._comms[name] = comm
            self._look(name)
        elif looks:
            self._watchlist.watch(name, eager=True)

    def _forget(self, name: str) -> None:
        self._drop(name)
        self._new_pids.forget(name)

    def _drop(self, name: str) -> None:
        self._watchlist.forget(name)
        self._comms.pop(name, None)
        self._untitled.pop(name, None)
        self.mains.pop(int(name), None)
        self.ranks.pop(int(name), None)

    def _drop_forked_copies(self) -> None:
        """A child of a server between fork and exec carries its parent's command line: it is no second server."""
        for pid, main in list(self.mains.items()):
            parent = self.mains.get(main.stat.parent_pid)
            if parent is not None and parent.is_launch and parent.argv == main.argv:
                del self.mains[pid]

    def _follow_parent(self, rank: Rank, parent_pid: int) -> None:
        if parent_pid != rank.parent_pid:
            rank.parent_pid = parent_pid
            main = self._main_above(parent_pid)
            rank.is_orphan = main is None
            rank.main = main or rank.main

    def _main_above(self, pid: int) -> Main | None:
        """The nearest ancestor that is a launch, else the nearest one that runs Python and has no sglang:: title."""
        python: tuple[int, tuple[str, ...]] | None = None
        for _ in range(_MAX_ANCESTORS):
            if pid <= 0:
                break
            argv = cmdline.split_argv(try_read(f"{self._root}/{pid}/cmdline", _CMDLINE_BYTES))
            if cmdline.is_launch(argv):
                return self._main(pid, argv)
            if python is None and cmdline.is_python(argv):
                python = (pid, argv)
            stat = procfs.parse_stat(try_read(f"{self._root}/{pid}/stat", 4096))
            pid = stat.parent_pid if stat else 0
        return self._main(*python) if python else None

    def _main(self, pid: int, argv: tuple[str, ...]) -> Main | None:
        if pid not in self.mains:
            try:
                self.mains[pid] = Main(self._root, pid, argv)
            except OSError:
                return None
        return self.mains[pid]


def try_read(path: str, limit_bytes: int) -> bytes:
    """The file, or nothing: it may be gone or belong to another user, and then its values are not seen."""
    try:
        return procfs.read_file(path, limit_bytes)
    except OSError:
        return b""


def link(path: str) -> str | None:
    """The target of a symbolic link such as `ns/net`, None when it may not be read."""
    try:
        return os.readlink(path)
    except OSError:
        return None
