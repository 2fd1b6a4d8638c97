"""The log of one server as events: found by itself or given, read from its last start on, then followed."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from collectors.follow import CommandFollower, FileFollower, Follower
from collectors.serverlog_attach import WANTED_STARTS, Backlog
from collectors.serverlog_events import LogAssembler
from collectors.serverlog_find import LogSource, find_log, older_files
from collectors.serverlog_history import older_starts
from ranktop.sample import Event, NoData, Processes, ServerProcess, SourceError

_FIRST_SEARCH_SECONDS = 0.4
_SEARCH_SECONDS = 0.1
_RETRY_SECONDS = 10.0


class ServerLogCollector:
    """Follows one server's log. `path` or `command` name it; else it is looked for from the main process.

    The first read gives the start before the last (its arguments), the last start and the tail.
    """

    name = "serverlog"
    part = "events"

    def __init__(
        self,
        server: str,
        path: Path | None = None,
        command: str | None = None,
        proc_root: Path = Path("/proc"),
        period_seconds: float = 1.0,
        find: Callable[[int, Path], LogSource] = find_log,
    ) -> None:
        self.server: str | None = server
        self._id = server
        self._path = path
        self._command = command
        self._proc_root = proc_root
        self.period_seconds = period_seconds
        self._find = find
        self._follower: Follower | None = None
        self._backlog: Backlog | None = None
        self._history: tuple[Path, ...] = ()
        self._assembler = LogAssembler(server)
        self._main: tuple[int | None, int] | None = None
        self._failure: SourceError | None = None
        self._retry_unix_seconds = 0.0

    def read(self, processes: Processes | None, now: float) -> tuple[Event, ...]:
        """The events since the last read. Raises NoData without a log, SourceError for one that cannot be read."""
        main = _main_process(processes, self._id)
        if main is not None and self._main not in (None, (main.pid, main.start_ticks)):
            self.close()
        follower = self._follower
        if follower is None:
            if self._failure is not None and now < self._retry_unix_seconds:
                raise self._failure
            follower = self._attach(main, now)
            self._main = (main.pid, main.start_ticks) if main is not None else None
        try:
            lines = follower.read_lines()
        except SourceError as error:
            # `kubectl logs -f` ends with its pod: ask again, but not in a tight loop.
            self.close()
            self._failure, self._retry_unix_seconds = error, now + _RETRY_SECONDS
            raise
        self._assembler.feed(map(_text, lines), now)
        skipped = follower.skipped_bytes()
        if skipped:
            self._assembler.gap(skipped, now)
        return (*self._late_starts(now), *self._assembler.take())

    def close(self) -> None:
        """Let go of the file or the command; the next read attaches anew."""
        if self._follower is not None:
            self._follower.close()
        if self._backlog is not None:
            self._backlog.close()
        self._follower = self._backlog = None
        self._assembler = LogAssembler(self._id)

    def _attach(self, main: ServerProcess | None, now: float) -> Follower:
        source = self._source(main)
        if source.path is None:
            self._follower = CommandFollower(source.argv)
            return self._follower
        self._history = source.history
        self._backlog = backlog = Backlog(source.path)
        self._follower = FileFollower(source.path, backlog.end)
        tail = backlog.tail()
        if tail:
            self._assembler.set_zone(_text(tail[-1]), backlog.written_unix_seconds)
        self._assembler.feed(map(_text, backlog.search(_FIRST_SEARCH_SECONDS)), now)
        self._assembler.feed(map(_text, tail), now)
        return self._follower

    def _late_starts(self, now: float) -> tuple[Event, ...]:
        """Starts that lie so far back that the first read did not get to them."""
        if self._backlog is None:
            return ()
        late = LogAssembler(self._id, self._assembler.zone)
        late.feed(map(_text, self._backlog.search(_SEARCH_SECONDS)), now)
        if self._backlog.is_searched:
            late.feed(map(_text, older_starts(self._history, WANTED_STARTS - self._backlog.starts)), now)
            self._backlog.close()
            self._backlog = None
        return late.take()

    def _source(self, main: ServerProcess | None) -> LogSource:
        if self._path is not None:
            return LogSource("file", self._path, history=older_files(self._path))
        if self._command is not None:
            return LogSource("command", argv=tuple(shlex.split(self._command)))
        if main is None or main.pid is None:
            raise NoData(f"log of {self._id}: its main process is not seen here (give --log FILE)", "no_log")
        return self._find(main.pid, self._proc_root)


def _main_process(processes: Processes | None, server: str) -> ServerProcess | None:
    return next((main for main in processes.servers if main.id == server), None) if processes is not None else None


def _text(line: bytes) -> str:
    # A copytruncate under a writer without O_APPEND leaves NULs where the old lines were.
    return line.lstrip(b"\0").decode("utf-8", "replace").rstrip("\r")
