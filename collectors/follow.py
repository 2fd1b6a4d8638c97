"""Follow a growing file or a command's output: rotation, truncation, copytruncate, no line twice, bounded reads."""

from __future__ import annotations

import os
import subprocess
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ranktop.sample import SourceError

MAX_READ_BYTES = 8 << 20
"""Most that one read takes."""
MAX_BEHIND_BYTES = 32 << 20
"""Further behind than this the follower jumps near the end rather than falling back for ever."""
MAX_LINE_BYTES = 1 << 20


class Follower(Protocol):
    """Complete lines as they come."""

    def read_lines(self) -> list[bytes]:
        """The complete lines since the last call, at most about MAX_READ_BYTES of them."""
        ...

    def skipped_bytes(self) -> int:
        """Bytes left out since the last call of this."""
        ...

    def close(self) -> None: ...


class FileFollower:
    """Follows a path: what it names now, after rotation the new file, after truncation from its begin."""

    def __init__(self, path: Path, offset: int) -> None:
        self._path = path
        self._offset = offset
        self._skipped = 0
        self._lines = _Lines()
        self._fd = _open(path)

    def read_lines(self) -> list[bytes]:
        """See Follower. A file that is gone for the moment gives what the old one still gets."""
        size = os.fstat(self._fd).st_size
        if size < self._offset:
            self._restart(0)
        elif size - self._offset > MAX_BEHIND_BYTES:
            self._skipped += size - MAX_READ_BYTES - self._offset
            self._restart(size - MAX_READ_BYTES)
        data = os.pread(self._fd, MAX_READ_BYTES, self._offset)
        self._offset += len(data)
        lines = self._lines.split(data)
        if not data and self._is_replaced():
            old, self._fd = self._fd, _open(self._path)
            os.close(old)
            self._restart(0)
            return lines + self.read_lines()
        return lines

    def skipped_bytes(self) -> int:
        """See Follower."""
        skipped, self._skipped = self._skipped, 0
        return skipped

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)

    def _restart(self, offset: int) -> None:
        self._offset = offset
        self._lines = _Lines(is_cut=offset > 0)

    def _is_replaced(self) -> bool:
        """Whether the path names another file that has something to read, so that no new file is opened in vain."""
        try:
            named = os.stat(self._path)
        except OSError:
            return False
        held = os.fstat(self._fd)
        return (named.st_ino, named.st_dev) != (held.st_ino, held.st_dev) and named.st_size > 0


class CommandFollower:
    """Follows the output of a command of the operator's own, for example `kubectl logs -f`."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._shown = argv[0] if argv else "(empty)"
        try:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
            )
        except (OSError, ValueError, IndexError) as error:
            raise SourceError(f"--log-command {self._shown}: {error} (check the command)", "log_command") from None
        assert self._process.stdout is not None
        self._fd = self._process.stdout.fileno()
        os.set_blocking(self._fd, False)
        self._lines = _Lines()
        self._stop = weakref.finalize(self, _end, self._process)

    def read_lines(self) -> list[bytes]:
        """See Follower. Raises SourceError when the command has ended and all it said was read."""
        data = bytearray()
        while len(data) < MAX_READ_BYTES:
            try:
                chunk = os.read(self._fd, 1 << 20)
            except BlockingIOError:
                break
            if not chunk:
                if data:
                    break
                status = self._process.wait()
                raise SourceError(
                    f"--log-command {self._shown}: ended with status {status} (start it again)", "log_command"
                )
            data += chunk
        return self._lines.split(bytes(data))

    def skipped_bytes(self) -> int:
        """See Follower: a pipe loses nothing, its writer waits."""
        return 0

    def close(self) -> None:
        """End the command."""
        self._stop()


class _Lines:
    """Bytes into complete lines; the rest waits. `is_cut`: the first line began earlier and is left out."""

    def __init__(self, is_cut: bool = False) -> None:
        self._rest = b""
        self._is_cut = is_cut

    def split(self, data: bytes) -> list[bytes]:
        if not data:
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        if self._is_cut and lines:
            self._is_cut = False
            lines = lines[1:]
        if len(self._rest) > MAX_LINE_BYTES:
            # What there is of it is given now, and the remainder is dropped when its end comes.
            if not self._is_cut:
                lines.append(self._rest[:MAX_LINE_BYTES])
            self._rest, self._is_cut = b"", True
        return lines


def _open(path: Path) -> int:
    try:
        # Never wait for a writer: a fifo is not a log.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise SourceError(f"log {path}: {error.strerror} (give --log FILE or run as its owner)", "log_file") from None
    return fd


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout is not None:
        process.stdout.close()
