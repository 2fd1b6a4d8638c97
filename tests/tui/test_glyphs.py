"""Bars fill in eighths, carry the plan as a tick, and have an ASCII form."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.draw.glyphs import ASCII, UNICODE, bar, choose


@pytest.mark.parametrize(
    ("share", "tick", "drawn"),
    [
        (0.0, None, "········"),
        (1.0, None, "████████"),
        (0.5, None, "████····"),
        (0.515625, None, "████▏···"),
        (0.5, 0.75, "████··│·"),
        (0.9, 0.5, "███████▎"),
        (None, 1.0, "·······│"),
        (7.0, None, "████████"),
    ],
)
def test_bar(share: float | None, tick: float | None, drawn: str) -> None:
    assert "".join(bar(UNICODE, share, 8, tick)) == drawn


@given(st.floats(-1, 2), st.floats(-1, 2), st.integers(1, 40))
def test_a_bar_has_its_width(share: float, tick: float, cells: int) -> None:
    for glyphs in (UNICODE, ASCII):
        assert len("".join(bar(glyphs, share, cells, tick))) == cells


def test_ascii_signs_are_ascii() -> None:
    signs = (ASCII.eighths, ASCII.empty, ASCII.tick, ASCII.rule, ASCII.missing, ASCII.more, *ASCII.marks.values())
    assert "".join(signs).isascii()
    assert len(set(ASCII.marks.values())) == len(ASCII.marks), "state must be told without colour"


@pytest.mark.parametrize(
    ("environment", "glyphs"),
    [
        ({}, "UNICODE"),
        ({"LANG": "C"}, "ASCII"),
        ({"LANG": "C.UTF-8"}, "UNICODE"),
        ({"LANG": "POSIX"}, "ASCII"),
        ({"LC_ALL": "C", "LANG": "C.UTF-8"}, "ASCII"),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, "UNICODE"),
    ],
)
def test_the_locale_is_the_user_s(environment: dict[str, str], glyphs: str) -> None:
    """Of a process of its own, as Python sets its locale when it starts."""
    script = f"from tui.draw import glyphs; print(glyphs.choose(False) is glyphs.{glyphs})"
    done = subprocess.run(
        [sys.executable, "-c", script], env={"TERM": "xterm", **environment}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


def test_a_dumb_terminal_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    assert choose(False) is ASCII
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("locale.getpreferredencoding", lambda _: "ISO-8859-1")
    assert choose(False) is ASCII
    monkeypatch.setattr("locale.getpreferredencoding", lambda _: "UTF-8")
    assert choose(False) is UNICODE
    assert choose(True) is ASCII
