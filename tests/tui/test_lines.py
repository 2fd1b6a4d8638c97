"""A repaint is one region a row, from the first to the last cell that differs."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.strip import Strip

from tui.draw.spans import Span, TextLine
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


class Asked(Sequence[TextLine]):
    """Lines that remember which of them were looked at."""

    def __init__(self, count: int, word: str = "row") -> None:
        self._count, self._word = count, word
        self.rows: list[int] = []

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> TextLine:  # type: ignore[override]
        self.rows.append(row)
        return (Span(f" {self._word} {row}"),)


class LinesApp(App[None]):
    """One scrolling block."""

    CSS = "Lines { height: 1fr; }"

    def compose(self) -> ComposeResult:
        yield Lines(Palette(load_theme("night")), "›")

    def text(self) -> list[str]:
        lines = self.query_one(Lines)
        return ["".join(segment.text for segment in lines.render_line(y)).rstrip() for y in range(lines.size.height)]


async def test_of_many_rows_only_those_on_the_screen_are_drawn() -> None:
    app, first, second = LinesApp(), Asked(1000), Asked(1000, "line")
    async with app.run_test(size=(40, 10)) as pilot:
        lines = app.query_one(Lines)
        lines.show(first)
        await pilot.pause()
        assert set(first.rows) == set(range(10))
        lines.scroll_to(y=500, animate=False)
        await pilot.pause()
        assert set(first.rows) == {*range(10), *range(500, 510)}
        lines.show(second)
        await pilot.pause()
        assert set(second.rows) == set(range(500, 510))
        assert app.text()[0] == " line 500"


async def test_the_cursor_is_a_sign_and_not_only_a_colour() -> None:
    app = LinesApp()
    async with app.run_test(size=(40, 10)) as pilot:
        app.query_one(Lines).show(Asked(5), cursor=2)
        await pilot.pause()
        assert app.text()[:4] == [" row 0", " row 1", "›row 2", " row 3"]
        app.query_one(Lines).show(Asked(5), cursor=3)
        await pilot.pause()
        assert app.text()[:4] == [" row 0", " row 1", " row 2", "›row 3"]


async def test_another_theme_draws_every_row_anew() -> None:
    app, rows = LinesApp(), Asked(5)
    async with app.run_test(size=(40, 10)) as pilot:
        lines = app.query_one(Lines)
        lines.show(rows)
        await pilot.pause()
        before = lines.render_line(0)
        lines.repaint_with(Palette(load_theme("day")))
        await pilot.pause()
        assert lines.render_line(0) != before
