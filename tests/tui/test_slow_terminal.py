"""A terminal that takes little or nothing: the app goes on, frames are left out, and the newest state is shown."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyte
import pytest

from support.terminal import Terminal

COMMAND = (sys.executable, "-m", "support.screen_process")
VIEWS = b"234567892345678923456789"
"""Two dozen whole views, the last of them Sources: far more than a terminal takes that nobody reads."""


@pytest.fixture
def seconds(tmp_path: Path) -> Path:
    """Where the recorder writes."""
    return tmp_path / "seconds"


@pytest.fixture
def terminal(seconds: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """The screen on a terminal, its first picture there."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parent.parent))
    started = Terminal([*COMMAND, str(seconds)], 120, 40)
    assert started.read_until("TP7", 30) is not None
    yield started
    started.kill()


def recorded(path: Path) -> int:
    return len(path.read_text().splitlines())


def screen_of(terminal: Terminal) -> list[str]:
    screen = pyte.Screen(120, 40)
    pyte.ByteStream(screen).feed(bytes(terminal.received))
    return list(screen.display)


def wait_until(path: Path, count: int) -> bool:
    ends = time.monotonic() + 30
    while recorded(path) < count and time.monotonic() < ends:
        time.sleep(0.05)
    return recorded(path) >= count


def test_a_terminal_that_takes_nothing_stops_neither_sampling_nor_recording(terminal: Terminal, seconds: Path) -> None:
    before = recorded(seconds)
    for key in VIEWS:
        terminal.press(bytes((key,)))
        time.sleep(0.05)
    assert wait_until(seconds, before + 4), "the loop waits for the terminal"


def test_what_nobody_read_is_left_out_and_the_newest_is_shown(terminal: Terminal, seconds: Path) -> None:
    taken = len(terminal.received)
    for key in VIEWS:
        terminal.press(bytes((key,)))
        time.sleep(0.05)
    count = recorded(seconds)
    assert wait_until(seconds, count + 3)
    assert terminal.read_until("what came back", 10) is not None
    terminal.read_for(1.5)
    assert len(terminal.received) - taken < 30_000, "two dozen views are some 60 kB"
    lines = screen_of(terminal)
    assert "source" in lines[2]
    assert "127.0.0.1:30000" in "\n".join(lines)
    assert f"14:13:{20 + recorded(seconds) - 1}" in lines[0] or f"14:13:{20 + recorded(seconds) - 2}" in lines[0]


def test_a_dialog_opened_meanwhile_is_there_in_the_end(terminal: Terminal, seconds: Path) -> None:
    for key in b"23456789?":
        terminal.press(bytes((key,)))
        time.sleep(0.05)
    assert wait_until(seconds, recorded(seconds) + 2)
    assert terminal.read_until("this help", 10) is not None
    terminal.read_for(1.0)
    lines = "\n".join(screen_of(terminal))
    assert "this help" in lines
    assert " hostmem " in lines, "the view stands behind the dialog"


def test_it_ends_on_a_terminal_that_takes_nothing(terminal: Terminal) -> None:
    for key in VIEWS + b"q":
        terminal.press(bytes((key,)))
        time.sleep(0.05)
    # Not read: `wait` of the terminal would.
    assert terminal.ends_within(10.0)


@pytest.mark.parametrize(
    "environment",
    [{"NO_COLOR": "1"}, {"TERM": "xterm"}, {"TERM": "screen"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}],
    ids=["NO_COLOR", "16 colours", "screen", "ASCII locale"],
)
def test_it_is_whole_on_lesser_terminals(
    environment: dict[str, str], seconds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parent.parent))
    monkeypatch.setenv("PYTHONCOERCECLOCALE", "0")
    started = Terminal([*COMMAND, str(seconds)], 120, 40, environment)
    try:
        assert started.read_until("TP7", 30) is not None
        started.read_for(1.0)
        text = "\n".join(screen_of(started))
    finally:
        started.kill()
    assert text.count("120.00/120.00") == 8
    assert text.isascii() is ("LC_ALL" in environment)
