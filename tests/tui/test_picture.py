"""Only what differs is sent, and the terminal shows the same as after the whole frames. pyte is the terminal."""

from __future__ import annotations

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.terminal.picture import Picture, erases_to_background
from tui.terminal.sgr import PLAIN, change, styled

ROWS, COLUMNS = 4, 40
STYLES = [
    Style(color="#cfd6dd", bgcolor="#11151a"),
    Style(color="#cfd6dd", bgcolor="#1b2129"),
    Style(color="#ff6b81", bgcolor="#11151a", bold=True),
    Style(color="#f2f5f8", bgcolor="#11151a", bold=True),
    Style(reverse=True),
]
TEXTS = st.text("ab0 █–漢", min_size=1, max_size=COLUMNS) | st.just(" " * 20)
LINES = st.lists(st.tuples(TEXTS, st.sampled_from(STYLES)), min_size=1, max_size=4)
PART = st.tuples(st.integers(0, ROWS - 1), LINES, st.integers(0, COLUMNS - 1), st.integers(1, COLUMNS))


def frame(parts: list[tuple[int, list[tuple[str, Style]], int, int]]) -> str:
    """As Textual writes one: a move before each piece, and one for the cursor at the end."""
    text = ""
    for row, runs, begin, length in parts:
        strip = Strip([Segment(word, style) for word, style in runs]).adjust_cell_length(COLUMNS)
        piece = "".join(
            each.style.render(each.text, color_system=ColorSystem.EIGHT_BIT) if each.style else each.text
            for each in strip.crop(begin, min(COLUMNS, begin + length))
        )
        text += f"\x1b[{row + 1};{begin + 1}H{piece}"
    return f"{text}\x1b[1;1H"


class Shown:
    """A terminal that took some text."""

    def __init__(self) -> None:
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self.screen)

    def take(self, text: str) -> None:
        self._stream.feed(text)

    def cells(self) -> list[list[object]]:
        return [[self.screen.buffer[y][x] for x in range(COLUMNS)] for y in range(ROWS)]


@given(st.lists(st.lists(PART, min_size=1, max_size=6), min_size=1, max_size=6), st.booleans())
def test_the_terminal_shows_what_the_whole_frames_would(
    frames: list[list[tuple[int, list[tuple[str, Style]], int, int]]], erases: bool
) -> None:
    whole, sparing, picture = Shown(), Shown(), Picture(erases=erases)
    for parts in frames:
        text = frame(parts)
        whole.take(text)
        sparing.take(picture.update(text))
        assert sparing.cells() == whole.cells()
        assert sparing.screen.cursor.attrs == pyte.screens.Char(" "), "a frame ends in the plain style"


def test_the_same_frame_again_is_only_the_cursor() -> None:
    picture, text = Picture(erases=True), frame([(0, [("TP0 120.00/120.00", STYLES[0])], 0, COLUMNS)])
    assert "TP0" in picture.update(text)
    assert picture.update(text) == "\x1b[1;1H"
    picture.forget()
    assert "TP0" in picture.update(text)


def test_of_a_number_the_digit_that_changed() -> None:
    picture = Picture(erases=True)
    picture.update(frame([(2, [("avail 346 GB", STYLES[0])], 0, COLUMNS)]))
    sent = picture.update(frame([(2, [("avail 347 GB", STYLES[0])], 0, COLUMNS)]))
    assert sent == f"\x1b[3;9H{change(PLAIN, styled(PLAIN, '38;5;188;48;5;16'))}7\x1b[m\x1b[1;1H"


def test_blanks_are_written_where_an_erasure_would_lose_the_background() -> None:
    text = frame([(0, [(" " * COLUMNS, STYLES[0])], 0, COLUMNS)])
    assert " " * COLUMNS in Picture(erases=False).update(text)
    assert f"\x1b[{COLUMNS}X\x1b[{COLUMNS}C" in Picture(erases=True).update(text)


@pytest.mark.parametrize("text", ["\x1b[?1049h", "\x1b]52;c;VFAw\x07", "\x1b[1;1H\x1b]52;c;VFAw\x07"])
def test_what_is_no_frame_goes_through(text: str) -> None:
    assert Picture(erases=True).update(text) == text


@pytest.mark.parametrize(
    ("environment", "erases"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "tmux-256color"}, True),
        ({"TERM": "screen-256color"}, False),
        ({"TERM": "screen-256color", "TMUX": "/tmp/tmux-0/default,1,0"}, True),
        ({"TERM": "vt100"}, False),
        ({}, False),
    ],
)
def test_who_erases_to_the_background(environment: dict[str, str], erases: bool) -> None:
    assert erases_to_background(environment) is erases


SGR = st.lists(
    st.sampled_from(["", "0", "1", "3", "7", "31", "97", "42", "38;5;188", "48;5;16", "38;2;1;2;3", "39", "49"]),
    min_size=1,
    max_size=5,
).map(";".join)


@given(SGR, SGR)
def test_a_change_leads_from_one_style_to_the_other(one: str, other: str) -> None:
    shown, wanted = styled(PLAIN, one), styled(PLAIN, other)
    sequence = change(shown, wanted)
    assert (styled(shown, sequence[2:-1]) if sequence else shown) == wanted
