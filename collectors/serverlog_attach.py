"""What is read of a log that is already there: its last two starts and its end, never all of a gigabyte."""

from __future__ import annotations

import os
import time
from pathlib import Path

from collectors.serverlog_prefix import MAX_ARGS_CHARACTERS
from ranktop.sample import SourceError

START_BYTES = 1 << 20
"""How much of the newest start is read: eight ranks log about 20 kB until ready."""
TAIL_BYTES = 1 << 20

_MARK = b"server_args="
_STEP_BYTES = 1 << 20
_LINE_BYTES = 4096
WANTED_STARTS = 2
"""The running server's and the one before it, so that what changed between them can be told."""


class Backlog:
    """A log at the moment of attaching. Starts are searched from its end backwards, in slices of time."""

    def __init__(self, path: Path) -> None:
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise SourceError(
                f"log {path}: {error.strerror} (give --log FILE or run as its owner)", "log_file"
            ) from None
        status = os.fstat(self._fd)
        self.written_unix_seconds = status.st_mtime
        # Only whole lines: the follower goes on where the last of them ends.
        self.end = self._line_begin(status.st_size)
        self._tail = self._after_line_end(max(0, self.end - TAIL_BYTES))
        self._position = self.end
        self._starts: list[int] = []

    @property
    def is_searched(self) -> bool:
        """Whether both starts were found, or the whole file was searched for them."""
        return self._position == 0 or len(self._starts) == WANTED_STARTS

    @property
    def starts(self) -> int:
        """Starts found so far."""
        return len(self._starts)

    def tail(self) -> list[bytes]:
        """The last lines, about TAIL_BYTES of them."""
        return os.pread(self._fd, self.end - self._tail, self._tail).split(b"\n")[:-1]

    def search(self, seconds: float) -> list[bytes]:
        """Search on for about `seconds`. Lines of what was found: of the newest start what follows it (without the
        tail), of the one before it the arguments alone; the older first."""
        deadline = time.monotonic() + seconds
        found: list[list[bytes]] = []
        while not self.is_searched and time.monotonic() < deadline:
            begin = max(0, self._position - _STEP_BYTES)
            # A mark may lie across two steps.
            data = os.pread(self._fd, min(self.end, self._position + len(_MARK) - 1) - begin, begin)
            at = data.rfind(_MARK)
            while at >= 0 and len(self._starts) < WANTED_STARTS:
                self._starts.append(self._line_begin(begin + at))
                found.append(self._lines_of(len(self._starts)))
                at = data.rfind(_MARK, 0, at)
            self._position = begin
        return [line for lines in reversed(found) for line in lines]

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)

    def _lines_of(self, number: int) -> list[bytes]:
        start = self._starts[number - 1]
        if number > 1:
            return os.pread(self._fd, MAX_ARGS_CHARACTERS, start).split(b"\n", 1)[:1]
        length = max(0, min(self._tail - start, START_BYTES))
        return os.pread(self._fd, length, start).split(b"\n")[:-1]

    def _line_begin(self, offset: int) -> int:
        """Offset after the last line end before `offset`; `offset` itself when its line is longer than a page."""
        begin = max(0, offset - _LINE_BYTES)
        newline = os.pread(self._fd, offset - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        return 0 if begin == 0 else offset

    def _after_line_end(self, offset: int) -> int:
        """Offset of the first line that begins at or after `offset`."""
        if offset == 0:
            return 0
        newline = os.pread(self._fd, _LINE_BYTES, offset - 1).find(b"\n")
        return offset + newline if newline >= 0 else offset
