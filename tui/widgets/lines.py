"""Lines that repaint only what changed. Every live part of the screen is one of these."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.draw.spans import TextLine
from tui.palette import Palette


class Lines(ScrollView, can_focus=False):
    """Text lines of the widget's width, scrolled when there are more than fit. One of them can be the cursor.

    Textual sends every dirty region whole and does not compare it with the frame before (facts: python-stack 1a), so
    the comparison is made here: one region a row, from the first to the last cell that differs.
    """

    DEFAULT_CSS = """
    Lines { height: auto; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    """

    class Clicked(Message):
        """A row was clicked."""

        def __init__(self, lines: Lines, row: int) -> None:
            super().__init__()
            self.lines = lines
            self.row = row

    def __init__(self, palette: Palette, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._use(palette)
        self._lines: tuple[TextLine, ...] = ()
        self._cursor: int | None = None
        self._strips: list[Strip | None] = []
        """Of rows that have been on the screen since they changed: a thousand events are not painted for forty rows."""

    def repaint_with(self, palette: Palette) -> None:
        """Another theme: every strip anew."""
        self._use(palette)
        self._strips = [None] * len(self._lines)
        self.refresh()

    def show(self, lines: Sequence[TextLine], cursor: int | None = None) -> None:
        """Draw these lines, touching only rows whose text, roles or cursor differ from what stands there."""
        before, cursor_before = self._lines, self._cursor
        self._lines, self._cursor = tuple(lines), cursor
        if len(self._lines) != len(before):
            self._strips = [None] * len(self._lines)
            self.virtual_size = Size(self.size.width, len(self._lines))
            self.refresh(layout=self.styles.is_auto_height)
            return
        moved = {cursor_before, cursor} if cursor != cursor_before else frozenset[int | None]()
        top, height = self.scroll_offset.y, self.size.height
        for row, (old, new) in enumerate(zip(before, self._lines, strict=True)):
            if old != new or row in moved:
                painted, self._strips[row] = self._strips[row], None
                if painted is not None and top <= row < top + height:
                    first, last = changed_cells(painted, self._strip(row))
                    self.refresh(Region(first, row - top, last - first, 1))

    def show_row(self, row: int) -> None:
        """Scroll so far that the row is on the screen."""
        top, height = self.scroll_offset.y, self.size.height
        if row < top:
            self.scroll_to(y=row, animate=False)
        elif row >= top + height > 0:
            self.scroll_to(y=row - height + 1, animate=False)

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        width = self.size.width
        if row >= len(self._strips):
            return Strip.blank(width, self._palette.blank)
        return self._strip(row).adjust_cell_length(width, self._palette.blank)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines)

    def on_click(self, event: object) -> None:
        row = getattr(event, "y", 0) + self.scroll_offset.y
        if row < len(self._lines):
            self.post_message(self.Clicked(self, row))

    def _use(self, palette: Palette) -> None:
        self._palette = palette
        self._cursor_palette = palette.on("panel")

    def _strip(self, row: int) -> Strip:
        strip = self._strips[row]
        if strip is None:
            palette = self._cursor_palette if row == self._cursor else self._palette
            strip = self._strips[row] = palette.strip(self._lines[row])
        return strip


def changed_cells(before: Strip, after: Strip) -> tuple[int, int]:
    """Half-open range of cells that differ in text or style; whole runs of one style, from either end."""
    old, new = list(before), list(after)
    if before.cell_length != after.cell_length:
        return 0, max(before.cell_length, after.cell_length)
    first = _common(old, new)
    last = after.cell_length - _common([*reversed(old)], [*reversed(new)], from_end=True)
    return (first, last) if first < last else (0, after.cell_length)


def _common(old: list[Segment], new: list[Segment], *, from_end: bool = False) -> int:
    """Cells that are equal from this end. Within a run of one style the text is compared cell by cell."""
    cells = 0
    for one, other in zip(old, new, strict=False):
        if one == other:
            cells += one.cell_length
            continue
        if one.style == other.style and one.text.isascii() and other.text.isascii():
            texts = (one.text[::-1], other.text[::-1]) if from_end else (one.text, other.text)
            for a, b in zip(*texts, strict=False):
                if a != b:
                    break
                cells += 1
        break
    return cells
