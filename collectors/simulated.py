"""Hardware that a stand-in node simulates, in place of this machine's own, read from the file its server names.

The file is somebody's: it must be a regular file of the server's own user that nobody else can write, small, and of the
known form. Whatever it says of itself, everything from it is `simulated`.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ranktop.sample import Collector, NoData, Processes, ServerProcess, SourceError
from ranktop.sample.demo_state import MAX_BYTES, DemoState

STALE_SECONDS = 10.0
_BY_PID = ("placements", "cgroups")


class OrSimulated:
    """A collector of the machine's own hardware, replaced while the servers seen are those of a stand-in node.

    It keeps the name and the part of the real one. With a stand-in and a real server side by side the real one wins.
    """

    server = None

    def __init__(self, real: Collector, pick: Callable[[DemoState], Any], states: DemoStates) -> None:
        self.name = real.name
        self.part = real.part
        self._real = real
        self._pick = pick
        self._states = states

    @property
    def period_seconds(self) -> float:
        return self._real.period_seconds

    def read(self, processes: Processes | None, now: float) -> Any:
        if processes is None:
            raise NoData("the processes were not looked at yet", "waiting")
        if not is_simulated(processes.servers):
            return self._real.read(processes, now)
        picked = [self._pick(self._states.read(server)) for server in processes.servers]
        # Ranks of several stand-ins have different pids; there is one machine only.
        return {pid: found for part in picked for pid, found in part.items()} if self.part in _BY_PID else picked[0]


def is_simulated(servers: Sequence[ServerProcess]) -> bool:
    """Whether there are servers, and all of them are those of stand-in nodes."""
    return bool(servers) and all(server.demo_state_path is not None for server in servers)


class DemoStates:
    """Reads state files, each content once for all collectors that ask.

    What a file says of time is the stand-in's own clock, which can run fast: its age is that of the file.
    """

    def __init__(self, proc_root: str | os.PathLike[str] = "/proc", *, wall: Callable[[], float] = time.time) -> None:
        self._proc = os.fspath(proc_root)
        self._wall = wall
        self._cached: dict[str, tuple[tuple[int, int], DemoState]] = {}

    def read(self, server: ServerProcess) -> DemoState:
        """The newest state of one server's file. NoData without one; SourceError says why it is not believed."""
        path = server.demo_state_path or ""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise NoData(f"the stand-in node's {path} is not there: it has ended", "absent") from None
        except OSError as error:
            raise SourceError(f"the stand-in node's {path}: {error.strerror} (is the demo still up?)") from error
        try:
            state = self._believed(fd, path, os.stat(f"{self._proc}/{server.pid}").st_uid)
            age = self._wall() - os.fstat(fd).st_mtime
        except OSError as error:
            raise SourceError(f"the stand-in node's {path}: {error.strerror} (is the demo still up?)") from error
        finally:
            os.close(fd)
        if age > STALE_SECONDS:
            raise SourceError(
                f"the stand-in node's {path} was not written for {age:.0f} s (is the demo well?)", "stale"
            )
        return state

    def _believed(self, fd: int, path: str, owner: int) -> DemoState:
        seen = os.fstat(fd)
        reason = refusal(seen, owner)
        if reason is not None:
            raise SourceError(f"the stand-in node's {path} is not read: {reason}", "refused")
        key = (seen.st_ino, seen.st_mtime_ns)
        cached = self._cached.get(path)
        if cached is not None and cached[0] == key:
            return cached[1]
        try:
            state = as_simulated(msgspec.json.decode(os.read(fd, MAX_BYTES + 1), type=DemoState))
        except msgspec.DecodeError as error:
            raise SourceError(f"the stand-in node's {path}: {error} (made by another ranktop?)", "malformed") from error
        self._cached[path] = (key, state)
        return state


def refusal(seen: os.stat_result, owner: int) -> str | None:
    """Why a file of these attributes is not to be believed, None when it is."""
    if not stat.S_ISREG(seen.st_mode):
        return "no regular file"
    if seen.st_uid != owner:
        return f"it belongs to user {seen.st_uid}, its server to user {owner}"
    if seen.st_mode & 0o022:
        return "others may write to it"
    if seen.st_size > MAX_BYTES:
        return f"{seen.st_size} bytes, more than {MAX_BYTES}"
    return None


def as_simulated(state: DemoState) -> DemoState:
    """The state with every part marked, whatever the file claimed."""
    replace = msgspec.structs.replace
    return replace(
        state,
        host=replace(state.host, source="simulated"),
        numa=tuple(replace(node, source="simulated") for node in state.numa),
        gpus=replace(state.gpus, source="simulated"),
        placements={
            pid: tuple(replace(one, source="simulated") for one in found) for pid, found in state.placements.items()
        },
    )
