"""A line that takes 20 kB/s: how long a key waits for its first answer, and how long the app's loop stands still."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from support.terminal import Terminal
from tests.bench.rows import Row, of_runs

LINK_BYTES_PER_SECOND = 20_000
SIZES = ((80, 24), (120, 40), (200, 60))
LIMIT_MILLISECONDS = 300
KEYS = (b"2", b"3", b"4", b"7", b"8", b"9", b"1", b"\x1b[B", b"\x1b[B", b"\x1b[6~", b"\x1b[5~", b"?", b"\x1b")
"""Dense views, the cursor by rows and by pages, and a dialog. Each changes something on the screen at any size."""
HURRY = b"2345678923456781"
"""Views asked for faster than the line takes them."""


def rows() -> Iterator[Row]:
    """Issue 7: a reader at 20 kB/s never freezes the screen for more than 300 ms."""
    for columns, lines in SIZES:
        yield from _rows(columns, lines)


def _rows(columns: int, lines: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        beats = Path(folder) / "beats"
        command = [sys.executable, "-m", "tests.bench.beating", "8", str(beats)]
        terminal = Terminal(command, columns, lines, bytes_per_second=LINK_BYTES_PER_SECOND)
        if terminal.read_until("TP0", 60) is None:
            raise RuntimeError(f"never painted: {bytes(terminal.received[-500:])!r}")
        terminal.read_for(2)
        answers, sizes = zip(*(_answer(terminal, key) for key in KEYS), strict=True)
        for key in HURRY:
            terminal.press(bytes((key,)))
            terminal.read_for(0.1)
        terminal.read_for(2)
        terminal.press(b"q")
        if terminal.wait(10) is None:
            terminal.kill()
            raise RuntimeError("did not end")
        pauses = [1000 * pause for pause in json.loads(beats.read_text())]
    name = f"20 kB/s, {columns}x{lines}"
    yield of_runs(f"{name}: key to its first answer", list(answers), "ms", LIMIT_MILLISECONDS)
    yield Row(f"{name}: the slowest of these", max(answers), "ms", LIMIT_MILLISECONDS)
    yield Row(f"{name}: longest pause of the loop", max(pauses), "ms", LIMIT_MILLISECONDS)
    yield of_runs(f"{name}: bytes of an answer", [float(size) for size in sizes], "B")


def _answer(terminal: Terminal, key: bytes) -> tuple[float, int]:
    """Milliseconds to the first byte, and bytes until it is quiet; the line is idle before."""
    terminal.read_for(0.6)
    had, pressed = len(terminal.received), time.monotonic()
    terminal.press(key)
    while len(terminal.received) == had and time.monotonic() - pressed < 3:
        terminal.read_once(0.005)
    waited = (time.monotonic() - pressed) * 1000
    terminal.read_for(0.5)
    return waited, len(terminal.received) - had
