"""A program in a pseudo terminal: when its screen is there, what it costs, how fast it answers and leaves."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct

from support.terminal import CONTROL, Terminal


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
        tail = CONTROL.sub(b"", bytes(terminal.received[-500:])).decode("utf-8", "replace")
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
