"""Logs that are rotated, cut, deleted and flooded; files of the kernel that go away; a clock that is set."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

from collectors.hostmem import HostMemCollector
from collectors.serverlog import ServerLogCollector
from faults.fault import Fault, Stage, Watched

_LINE = "[2026-11-29 09:02:31 TP{}] Try to allocate 64 tokens.\n"


class _Log:
    """A log under a watched collector, and the ranks of the lines that came through."""

    def __init__(self, stage: Stage) -> None:
        self.path = stage.folder / "server.log"
        self.write(0)
        self.watched = Watched(ServerLogCollector("a:1", path=self.path), source="serverlog")

    def write(self, rank: int, mode: str = "a") -> None:
        with self.path.open(mode) as file:
            file.write(_LINE.format(rank))

    def comes(self, shows: str) -> None:
        """Wait for an event of that rank or with that text."""

        events = self.watched.events
        self.watched.until(lambda _: any(shows == event.rank or shows in event.text for event in events))


def _log(break_: Callable[[_Log], None]) -> Callable[[Stage, str], None]:
    def trial(stage: Stage, shows: str) -> None:
        log = _Log(stage)
        with log.watched as watched:
            watched.well()
            log.comes("TP0")
            break_(log)
            log.comes(shows)
            watched.others_go_on(watched.well())
            log.write(9)
            log.comes("TP9")

    return trial


def _rotated(log: _Log) -> None:
    log.path.rename(log.path.with_suffix(".1"))
    log.write(5)


def _deleted(log: _Log) -> None:
    log.path.unlink()
    time.sleep(0.3)
    log.write(5)


def _truncated(log: _Log) -> None:
    log.path.write_text("")
    time.sleep(0.3)
    log.write(5)


def _flooded(log: _Log) -> None:
    with log.path.open("ab") as file:
        for _ in range(75):
            file.write((b"[2026-11-29 09:02:31 TP0] " + b"noise " * 19 + b"\n") * 7_100)


def _one_endless_line(log: _Log) -> None:
    with log.path.open("ab") as file:
        file.write(b"x" * (20 << 20) + b"\n")
    log.write(5)


def _binary(log: _Log) -> None:
    with log.path.open("ab") as file:
        file.write(os.urandom(1 << 20) + b"\n")
    log.write(5)


def _command_ends(stage: Stage, shows: str) -> None:
    stage.patch.setattr("collectors.serverlog._RETRY_SECONDS", 0.5)
    program = f"import time; print({_LINE.format(3)!r}, end='', flush=True); time.sleep(1)"
    command = f"{sys.executable} -c {shlex.quote(program)}"
    with Watched(ServerLogCollector("a:1", command=command), source="serverlog") as watched:
        watched.well()
        watched.broken(shows)
        watched.well()


def _kernel_file(stage: Stage, shows: str) -> None:
    """As when a container's mount of /proc goes."""
    root, away = stage.folder / "proc", stage.folder / "away"
    root.mkdir()
    (root / "meminfo").write_bytes(Path("/proc/meminfo").read_bytes())
    host = HostMemCollector(str(root), str(stage.folder / "sys"))
    host.name = "mounted"
    with Watched(host, source="mounted", bystander=True) as watched:
        watched.well()
        held = root.rename(away) / "meminfo"
        content = held.read_bytes()
        held.write_bytes(b"")
        watched.broken(shows)
        held.write_bytes(content)
        away.rename(root)
        watched.well()


def _clock(step_seconds: float) -> Callable[[Stage, str], None]:
    def trial(stage: Stage, shows: str) -> None:
        offset = 0.0
        with Watched(source="hostmem", wall=lambda: time.time() + offset) as watched:
            before = watched.well()
            offset = step_seconds
            stepped = watched.until(lambda one: abs(one.at_unix_seconds - before.at_unix_seconds) > 1000)
            assert stepped.at_monotonic_seconds - before.at_monotonic_seconds < 100
            settled = watched.well()
            watched.others_go_on(settled)
            state = watched.state(settled)
            assert state is not None
            assert state.state == shows

    return trial


FAULTS = (
    Fault("log", "is rotated", "TP5", _log(_rotated)),
    Fault("log", "is deleted and made again", "TP5", _log(_deleted)),
    Fault("log", "is truncated in place", "TP5", _log(_truncated)),
    Fault("log", "is flooded: 75 MB at once", "bytes of the log were skipped to keep up", _log(_flooded)),
    Fault("log", "holds a line of 20 MB", "TP5", _log(_one_endless_line)),
    Fault("log", "holds binary garbage", "TP5", _log(_binary)),
    Fault("log command", "ends", "ended with status 0 (start it again)", _command_ends),
    Fault("/proc", "files of the kernel are gone", "could not be read (is /proc mounted there?)", _kernel_file),
    Fault("clock", "is set an hour back", "ok", _clock(-3600.0)),
    Fault("clock", "is set an hour on", "ok", _clock(3600.0)),
)
