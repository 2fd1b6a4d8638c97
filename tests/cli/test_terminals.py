"""What the command does with the terminal that it is given."""

from __future__ import annotations

import pytest

from support.command import RANKTOP
from support.terminal import CONTROL, Terminal

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
    assert terminal.read_until("no SGLang server with main process 1 on this node", 30) is not None
    terminal.press(b"\x03")
    assert terminal.wait(20) == 0
    assert b"\x1b" not in terminal.received


def test_the_screen_names_the_pid_that_is_no_server_and_says_what_to_do() -> None:
    terminal = Terminal([str(RANKTOP), "--pid", "1"], 100, 30)
    assert terminal.read_until("only the process given with --pid is looked for", 30) is not None
    said = CONTROL.sub(b"", bytes(terminal.received))
    assert b"no SGLang server with main process 1 on this node (leave --pid out for all)" in said
    terminal.press(b"q")
    assert terminal.wait(20) == 0
