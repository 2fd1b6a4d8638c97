"""A program in a pseudo terminal, read as fast as one likes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Sequence

_TICK = os.sysconf("SC_CLK_TCK")
CONTROL = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b\][^\x07]*\x07")


class Terminal:
    """The master side of a terminal that a program runs in. `bytes_per_second` bounds how fast its output is taken."""

    def __init__(
        self,
        command: Sequence[str],
        columns: int,
        rows: int,
        environment: dict[str, str] | None = None,
        bytes_per_second: float | None = None,
    ) -> None:
        self._bytes_per_second = bytes_per_second
        self._reads_from = 0.0
        self.started = time.monotonic()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            for name in ("COLORTERM", "NO_COLOR", "COLUMNS", "LINES", "PYTHONDONTWRITEBYTECODE"):
                os.environ.pop(name, None)
            os.environ |= {"TERM": "xterm-256color", **(environment or {})}
            # Not `execvp`: the environment in C has the COLUMNS and LINES that readline, of pytest, put there.
            os.execvpe(command[0], [*command], os.environ)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.received = bytearray()

    def read_for(self, seconds: float) -> None:
        """Take what comes for so long."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0 and self.read_once(left):
            pass

    def read_until(self, text: str, seconds: float) -> float | None:
        """Seconds since the start when the text had arrived; None when it did not come in time."""
        wanted = text.encode()
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            if not self.read_once(left):
                return None
            if wanted in CONTROL.sub(b"", bytes(self.received)):
                return time.monotonic() - self.started
        return None

    def read_once(self, seconds: float) -> bool:
        """One read. False when the program is gone."""
        rate = self._bytes_per_second
        if rate is not None:
            wait = min(seconds, self._reads_from - time.monotonic())
            if wait > 0:
                time.sleep(wait)
                return True
        if not select.select([self._fd], [], [], max(0.0, seconds))[0]:
            return True
        try:
            chunk = os.read(self._fd, 65536 if rate is None else max(1, int(rate / 100)))
        except OSError:
            return False
        self.received += chunk
        if rate is not None:
            self._reads_from = max(self._reads_from, time.monotonic() - 0.01) + len(chunk) / rate
        # A terminal says that it knows synchronized output and where its cursor is.
        if b"\x1b[?2026$p" in chunk:
            os.write(self._fd, b"\x1b[?2026;2$y")
        return bool(chunk)

    def press(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    @property
    def echoes(self) -> bool:
        """Whether what is typed is shown."""
        return bool(termios.tcgetattr(self._fd)[3] & termios.ECHO)

    def cpu_seconds(self) -> float:
        with open(f"/proc/{self.pid}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
        return sum(int(field) for field in fields[11:15]) / _TICK

    def rss_bytes(self) -> int:
        with open(f"/proc/{self.pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def wait(self, seconds: float) -> int | None:
        """The exit code; None when it does not end in time."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                os.close(self._fd)
                return os.waitstatus_to_exitcode(status)
            self.read_once(0.005)
        return None

    def ends_within(self, seconds: float) -> bool:
        """Whether the process ends although nothing of its output is taken. It is not reaped."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return True
            time.sleep(0.02)
        return False

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._fd)
