"""What the command does with the terminal that it is given."""

from __future__ import annotations

import pytest

from support.command import RANKTOP
from support.terminal import Terminal

MOUSE = b"\x1b[?1000h"


@pytest.mark.parametrize(("options", "asks"), [((), True), (("--no-mouse",), False)])
def test_the_mouse_is_left_to_the_terminal_when_asked(options: tuple[str, ...], asks: bool) -> None:
    terminal = Terminal([str(RANKTOP), "--pid", "1", *options], 100, 30)
    assert terminal.read_until("sources", 30) is not None
    terminal.press(b"q")
    assert terminal.wait(20) == 0
    assert (MOUSE in terminal.received) is asks


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines() -> None:
    terminal = Terminal([str(RANKTOP), "--pid", "1"], 100, 30, {"TERM": "dumb"})
    assert terminal.read_until("\n", 30) is not None
    terminal.press(b"\x03")
    assert terminal.wait(20) == 0
    assert b"\x1b" not in terminal.received
    assert terminal.received.strip()
