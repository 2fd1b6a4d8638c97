"""A repaint is one region a row, from the first to the last cell that differs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.widgets.lines import changed_cells

STYLES = [Style(color="red"), Style(color="blue")]
RUNS = st.lists(st.tuples(st.text("abc ", min_size=1, max_size=4), st.sampled_from(STYLES)), min_size=1, max_size=5)


def strip(runs: list[tuple[str, Style]]) -> Strip:
    return Strip([Segment(text, style) for text, style in runs])


def cells(painted: Strip) -> list[tuple[str, Style | None]]:
    return [(character, segment.style) for segment in painted for character in segment.text]


def test_one_number_in_the_middle() -> None:
    red, blue = STYLES
    before = strip([("rank ", red), ("12.5", blue), (" ok", red)])
    after = strip([("rank ", red), ("13.5", blue), (" ok", red)])
    assert changed_cells(before, after) == (6, 7)


def test_another_length_is_the_whole_row() -> None:
    assert changed_cells(strip([("abc", STYLES[0])]), strip([("abcd", STYLES[0])])) == (0, 4)


@given(RUNS, RUNS)
def test_what_lies_outside_did_not_change(one: list[tuple[str, Style]], other: list[tuple[str, Style]]) -> None:
    before, after = strip(one), strip(other)
    first, last = changed_cells(before, after)
    assert 0 <= first <= last <= max(before.cell_length, after.cell_length)
    if before.cell_length == after.cell_length:
        assert cells(before)[:first] == cells(after)[:first]
        assert cells(before)[last:] == cells(after)[last:]
