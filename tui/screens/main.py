"""The one screen of the app: title and sentence on top, a view below, keys at the bottom.

Views are pages of lines, not screens of widgets: switching costs a repaint, and everything stays in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from textual.app import ComposeResult
from textual.message import Message
from textual.screen import Screen

from ranktop.finding import Finding
from ranktop.reconcile.headline import loudest
from tui.draw.glyphs import Glyphs
from tui.draw.spans import TextLine
from tui.draw.top import draw_keys, draw_top
from tui.moment import Moment
from tui.palette import Palette
from tui.views.view import FindingTarget, Frame, Page, Row, Target, View, are_one, draw_page, most_rows
from tui.widgets.lines import Lines

_ORDER = ("top", "head", "body", "tail-head", "tail", "keys")
_PARTS = frozenset(_ORDER)


class LinesOf(Sequence[TextLine]):
    """The lines of rows, each drawn when it is asked for."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> TextLine: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[TextLine]: ...

    def __getitem__(self, index: int | slice) -> TextLine | Sequence[TextLine]:
        return LinesOf(self._rows[index]) if isinstance(index, slice) else self._rows[index].line


class MainScreen(Screen[None]):
    """Draws frames; keeps the newest page only to move its cursor and to draw it again when the size changes."""

    def __init__(self, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__()
        self._palette = palette
        self._glyphs = glyphs
        self._page = Page((), ())
        self._findings: Sequence[Finding] = ()
        self._has_bar = False
        """A scroll bar stands in the last column."""
        self._cursor: int | None = None
        self._pointed: Target | None = None
        """What the cursor is on: it stays on it while rows come, go and are sorted anew."""

    class Composed(Message):
        """Its parts are there: what was shown before was not drawn."""

    def on_mount(self) -> None:
        self.post_message(self.Composed())

    def compose(self) -> ComposeResult:
        for part in _ORDER:
            yield Lines(self._palette, self._glyphs.pointer, id=part)

    def show(self, frame: Frame, view: View, moment: Moment) -> None:
        """Draw a frame through a view."""
        width, glyphs = self.size.width, self._glyphs
        if width <= 0 or not self._has_parts:
            return
        top = draw_top(frame.verdict, moment, width, glyphs)
        height = self.size.height - len(top) - 1
        self._page, self._has_bar = draw_page(view, frame._replace(width=width, height=height), self._has_bar)
        moved = self._follow()
        self._findings = frame.verdict.findings
        page = self._page
        self._lines("top").show(top)
        self._lines("head").show(page.head)
        self.set_class(page.tail is None, "-whole")
        self._lines("body").styles.max_height = most_rows(height, page) if page.tail is not None else None
        self._lines("tail-head").show(page.tail_head)
        self._draw_rows()
        if moved is not None:
            # A page that has just become longer than the screen cannot be scrolled before it was laid out.
            self.call_after_refresh(self._lines(moved[0]).show_row, moved[1])

    def _follow(self) -> tuple[str, int] | None:
        """Put the cursor where that is now which it was on; where it stands then, if that is another row."""
        if self._cursor is None:
            return None
        targets, pointed = self._targets(), self._pointed
        here = targets[self._cursor][2] if self._cursor < len(targets) else None
        if here is not None and (pointed is None or are_one(here, pointed)):
            return None
        rows = (row for row, (_, _, target) in enumerate(targets) if pointed is not None and are_one(target, pointed))
        found = next(rows, None)
        if found is None:
            self._point(self._cursor if here is not None else None)
            return None
        self._cursor = found
        return targets[found][:2]

    def _point(self, cursor: int | None) -> None:
        """The cursor is on this one of the targets."""
        self._cursor = cursor
        self._pointed = None if cursor is None else self._targets()[cursor][2]

    def show_keys(self, views: Sequence[tuple[str, str]], others: Sequence[tuple[str, str]], now: str) -> None:
        """The bottom line: views by number, the present one marked; then as many other keys as fit."""
        if not self._has_parts:
            return
        self._lines("keys").show([draw_keys(views, others, now, self.size.width, self._glyphs)])

    @property
    def _has_parts(self) -> bool:
        """Timers run before Textual has made the parts, and on while it takes them away."""
        return {child.id for child in self.children} >= _PARTS

    def use_palette(self, palette: Palette) -> None:
        """Another theme."""
        self._palette = palette
        for part in self.query(Lines):
            part.repaint_with(palette)

    def move_cursor(self, rows: int) -> None:
        """Up or down over what can be opened; a page without such rows scrolls instead."""
        targets = self._targets()
        if not targets:
            body = self._lines("body")
            body.scroll_to(y=body.scroll_offset.y + rows, animate=False)
            return
        if self._cursor is None:
            cursor = min(rows - 1, len(targets) - 1) if rows > 0 else len(targets) - 1
        else:
            cursor = max(0, min(len(targets) - 1, self._cursor + rows))
        self._point(cursor)
        self._draw_rows()
        part, row, _ = targets[cursor]
        self._lines(part).show_row(row)

    def rows_of_a_page(self) -> int:
        """How many rows a page key moves: what the scrolling part shows, but one."""
        return max(1, self._lines("body").size.height - 1)

    def rows_of_the_view(self) -> int:
        """At least as many as there are."""
        return len(self._page.rows) + len(self._page.tail or ())

    def forget_cursor(self) -> None:
        """Another view starts at its top."""
        self._point(None)
        if self._has_parts:
            for part in ("body", "tail"):
                self._lines(part).scroll_to(y=0, animate=False)

    def chosen(self) -> Target | None:
        """What Enter opens."""
        targets = self._targets()
        return targets[self._cursor][2] if self._cursor is not None and self._cursor < len(targets) else None

    def headline_target(self) -> Target | None:
        """The finding that the sentence on top is of."""
        loud = loudest(self._findings)
        return FindingTarget(loud[0]) if loud else None

    def on_lines_clicked(self, message: Lines.Clicked) -> None:
        for index, (part, row, _) in enumerate(self._targets()):
            if part == message.lines.id and row == message.row:
                self._point(index)
                self._draw_rows()

    def _targets(self) -> list[tuple[str, int, Target]]:
        """(part, row, target) of every row that can be opened, top to bottom."""
        parts: tuple[tuple[str, tuple[Row, ...]], ...] = (("body", self._page.rows), ("tail", self._page.tail or ()))
        return [
            (part, number, row.target)
            for part, rows in parts
            for number, row in enumerate(rows)
            if row.target is not None
        ]

    def _draw_rows(self) -> None:
        targets = self._targets()
        at = targets[self._cursor][:2] if self._cursor is not None and self._cursor < len(targets) else None
        below = self._page.rows[at[1]].below if at is not None and at[0] == "body" else ()
        for part, rows in (("body", self._page.rows), ("tail", below or self._page.tail or ())):
            cursor = at[1] if at is not None and at[0] == part else None
            self._lines(part).show(LinesOf(rows), cursor)

    def _lines(self, part: str) -> Lines:
        return self.get_child_by_id(part, Lines)
