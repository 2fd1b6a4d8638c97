"""A program in a pseudo terminal: when its screen is there, what it costs, how fast it answers and leaves."""

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

from msgspec import Struct

_TICK = os.sysconf("SC_CLK_TCK")
_CONTROL = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b\][^\x07]*\x07")


class Figures(Struct, frozen=True):
    """One run. Seconds are wall time, CPU is user and system time of the process and its children."""

    first_paint_seconds: float
    start_cpu_seconds: float
    cpu_per_second: float
    bytes_per_second: float
    rss_bytes: int
    key_milliseconds: float
    quit_seconds: float
    exit_code: int


class Terminal:
    """The master side of a terminal that a program runs in. `read_rate` bounds how fast its output is taken."""

    def __init__(
        self, command: Sequence[str], columns: int, rows: int, environment: dict[str, str] | None = None
    ) -> None:
        self.started = time.monotonic()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.environ |= {"TERM": "xterm-256color", **(environment or {})}
            for name in ("COLORTERM", "NO_COLOR", "COLUMNS", "LINES", "PYTHONDONTWRITEBYTECODE"):
                os.environ.pop(name, None)
            os.execvp(command[0], command)
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
            if wanted in _CONTROL.sub(b"", bytes(self.received)):
                return time.monotonic() - self.started
        return None

    def read_once(self, seconds: float) -> bool:
        """One read. False when the program is gone."""
        if not select.select([self._fd], [], [], max(0.0, seconds))[0]:
            return True
        try:
            chunk = os.read(self._fd, 65536)
        except OSError:
            return False
        self.received += chunk
        # A terminal says that it knows synchronized output and where its cursor is.
        if b"\x1b[?2026$p" in chunk:
            os.write(self._fd, b"\x1b[?2026;2$y")
        return bool(chunk)

    def press(self, keys: bytes) -> None:
        os.write(self._fd, keys)

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

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._fd)


def measure(
    command: Sequence[str],
    painted: str,
    *,
    columns: int = 120,
    rows: int = 40,
    settle_seconds: float = 4.0,
    seconds: float = 20.0,
    key: bytes = b"j",
    quit_key: bytes = b"q",
    environment: dict[str, str] | None = None,
) -> Figures:
    """One run of a screen. `painted` is text that only a full screen shows. RuntimeError when it never does."""
    terminal = Terminal(command, columns, rows, environment)
    first_paint = terminal.read_until(painted, 20)
    if first_paint is None:
        tail = _CONTROL.sub(b"", bytes(terminal.received[-500:])).decode("utf-8", "replace")
        terminal.kill()
        raise RuntimeError(f"{command[0]} never showed {painted!r}; its last words: {tail!r}")
    terminal.read_for(settle_seconds)
    start_cpu = terminal.cpu_seconds()
    cpu, before, began = start_cpu, len(terminal.received), time.monotonic()
    terminal.read_for(seconds)
    span = time.monotonic() - began
    cpu_per_second = (terminal.cpu_seconds() - cpu) / span
    bytes_per_second = (len(terminal.received) - before) / span
    rss = terminal.rss_bytes()
    answers: list[float] = []
    for _ in range(9):
        terminal.read_for(0.23)
        pressed, had = time.monotonic(), len(terminal.received)
        terminal.press(key)
        while len(terminal.received) == had and time.monotonic() - pressed < 1:
            terminal.read_once(1)
        answers.append((time.monotonic() - pressed) * 1000)
    asked = time.monotonic()
    terminal.press(quit_key)
    code = terminal.wait(6)
    quit_seconds = time.monotonic() - asked
    if code is None:
        terminal.kill()
    return Figures(
        first_paint_seconds=first_paint,
        start_cpu_seconds=start_cpu,
        cpu_per_second=cpu_per_second,
        bytes_per_second=bytes_per_second,
        rss_bytes=rss,
        key_milliseconds=sorted(answers)[len(answers) // 2],
        quit_seconds=quit_seconds,
        exit_code=-1 if code is None else code,
    )
