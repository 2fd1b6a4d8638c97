"""A repaint is one region a row, from the first to the last cell that differs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.strip import Strip

from tui.draw.spans import Span
from tui.palette import Palette
from tui.themes import load_theme
from tui.widgets.lines import Lines, changed_cells

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


class Tall(App[None]):
    """A thousand rows where ten fit."""

    def compose(self) -> ComposeResult:
        lines = Lines(Palette(load_theme("night")))
        lines.styles.height = 10
        yield lines


def _shown(lines: Lines) -> list[str]:
    return [lines.render_line(y).text.rstrip() for y in range(lines.size.height)]


async def test_rows_are_painted_when_they_are_on_the_screen() -> None:
    rows = [(Span(f"row {number}"),) for number in range(1000)]
    app = Tall()
    async with app.run_test(size=(40, 12)) as pilot:
        lines = app.query_one(Lines)
        lines.show(rows)
        await pilot.pause()
        assert _shown(lines) == [f"row {number}" for number in range(10)]
        assert sum(strip is not None for strip in lines._strips) == 10
        changed = [*rows[:3], (Span("other"),), *rows[4:500], (Span("far away"),), *rows[501:]]
        lines.show(changed, cursor=500)
        await pilot.pause()
        assert _shown(lines)[3] == "other"
        lines.show_row(500)
        await pilot.pause()
        assert _shown(lines)[-1] == "far away"
        lines.show(rows, cursor=500)
        await pilot.pause()
        assert _shown(lines)[-1] == "row 500"
        lines.show_row(0)
        await pilot.pause()
        assert _shown(lines)[3] == "row 3"
