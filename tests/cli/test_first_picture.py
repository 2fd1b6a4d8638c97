"""The first picture of the real command: what the terminal gets before Textual has it, and what becomes of it then."""

from __future__ import annotations

import pyte
import pytest

from support.command import RANKTOP
from support.terminal import Terminal
from tui.terminal.early import ENTER

TEXTUAL_BEGINS = b"\x1b[?1004h"
COLUMNS, ROWS = 120, 30


def picture(received: bytes) -> pyte.Screen:
    screen = pyte.Screen(COLUMNS, ROWS)
    pyte.ByteStream(screen).feed(received)
    return screen


@pytest.mark.parametrize(
    "environment",
    [{"COLORTERM": "truecolor"}, {}, {"TERM": "xterm"}, {"NO_COLOR": "1"}],
    ids=["true colours", "256 colours", "16 colours", "NO_COLOR"],
)
def test_textual_takes_it_over_as_it_stands(environment: dict[str, str]) -> None:
    terminal = Terminal([str(RANKTOP), "--pid", "1"], COLUMNS, ROWS, environment)
    assert terminal.read_until("quit", 30) is not None
    while TEXTUAL_BEGINS not in terminal.received:
        assert terminal.read_once(30)
    first = picture(bytes(terminal.received[: terminal.received.index(TEXTUAL_BEGINS)]))
    terminal.read_for(1.5)
    later = picture(bytes(terminal.received))
    terminal.press(b"q")
    assert terminal.wait(20) == 0
    assert terminal.received.count(ENTER.encode()) == 1
    assert "avail" in "".join(first.display)
    assert "quit" in first.display[-1]
    keys = range(COLUMNS)
    assert [first.buffer[ROWS - 1][x] for x in keys] == [later.buffer[ROWS - 1][x] for x in keys]
    blank = range(ROWS - 5, ROWS - 1)
    assert [first.buffer[y][5].bg for y in blank] == [later.buffer[y][5].bg for y in blank]


def test_a_key_pressed_before_textual_is_there_is_served_by_it() -> None:
    terminal = Terminal([str(RANKTOP), "--pid", "1"], COLUMNS, ROWS)
    while ENTER.encode() not in terminal.received:
        assert terminal.read_once(30)
    terminal.press(b"q")
    assert TEXTUAL_BEGINS not in terminal.received
    assert terminal.wait(30) == 0
    assert TEXTUAL_BEGINS in terminal.received


def test_what_is_typed_meanwhile_is_not_echoed() -> None:
    terminal = Terminal([str(RANKTOP), "--pid", "1"], COLUMNS, ROWS)
    while ENTER.encode() not in terminal.received:
        assert terminal.read_once(30)
    terminal.press(b"%%%%")
    while TEXTUAL_BEGINS not in terminal.received:
        assert terminal.read_once(30)
    terminal.press(b"q")
    assert terminal.wait(30) == 0
    assert b"%%%%" not in terminal.received
