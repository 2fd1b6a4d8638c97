"""The terminal before Textual has it: whatever ends the program then, it is as it was before."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from support.terminal import Terminal

BACK = b"\x1b[?25h\x1b[?1049l"
PROGRAM = """
import os, sys, time
from tui.terminal.early import EarlyScreen, given_back
with given_back(EarlyScreen(sys.stderr, os.environ, (80, 24))) as early:
    early.show("\\x1b[1;1Hfirst picture")
    {then}
"""


def begun(then: str) -> Terminal:
    """The program with its first picture on the terminal; `then` is what it does next."""
    terminal = Terminal([sys.executable, "-c", PROGRAM.format(then=then)], 80, 24)
    assert terminal.read_until("first picture", 20) is not None
    return terminal


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, -2)])
def test_a_signal(number: int, code: int) -> None:
    terminal = begun("time.sleep(60)")
    assert not terminal.echoes
    os.kill(terminal.pid, number)
    while BACK not in terminal.received:
        assert terminal.read_once(20)
    assert terminal.echoes
    assert terminal.wait(20) == code


def test_a_signal_whose_exit_was_lost_in_an_import_ends_it_after_the_import() -> None:
    lost = (
        "try: os.kill(os.getpid(), 15)\n    except SystemExit: print('lost')\n    early.end_if_told(); time.sleep(60)"
    )
    terminal = begun(lost)
    assert terminal.wait(20) == 143
    left, _, after = bytes(terminal.received).partition(BACK)
    assert b"lost" in left
    assert after == b""


def test_a_failure_is_said_on_the_screen_that_was_before() -> None:
    terminal = begun("raise RuntimeError('no such theme')")
    assert terminal.wait(20) == 1
    left, _, after = bytes(terminal.received).partition(BACK)
    assert b"first picture" in left
    assert b"no such theme" in after


def test_who_takes_it_restores_it() -> None:
    terminal = begun("early.take()")
    assert terminal.wait(20) == 0
    assert BACK not in terminal.received
