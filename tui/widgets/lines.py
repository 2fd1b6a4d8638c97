"""Lines that repaint only what changed. Every live part of the screen is one of these."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.draw.spans import TextLine
from tui.palette import Palette


class Lines(ScrollView, can_focus=False):
    """Text lines of the widget's width, scrolled when there are more than fit.

    Textual sends every dirty region whole and does not compare it with the frame before (facts: python-stack 1a), so
    the comparison is made here: one region a row, from the first to the last cell that differs.
    """

    DEFAULT_CSS = """
    Lines { height: auto; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    """

    def __init__(self, palette: Palette, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._palette = palette
        self._lines: tuple[TextLine, ...] = ()
        self._strips: list[Strip] = []

    def repaint_with(self, palette: Palette) -> None:
        """Another theme: every strip anew."""
        self._palette = palette
        self._strips = [palette.strip(text_line) for text_line in self._lines]
        self.refresh()

    def show(self, lines: Sequence[TextLine]) -> None:
        """Draw these lines, touching only rows whose text or roles differ from what stands there."""
        after = tuple(lines)
        before, self._lines = self._lines, after
        if len(after) != len(before):
            self._strips = [self._palette.strip(text_line) for text_line in after]
            self.virtual_size = Size(self.size.width, len(after))
            self.refresh(layout=self.styles.is_auto_height)
            return
        top = self.scroll_offset.y
        for y, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                strip = self._palette.strip(new)
                first, last = changed_cells(self._strips[y], strip)
                self._strips[y] = strip
                self.refresh(Region(first, y - top, last - first, 1))

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        width = self.size.width
        if row >= len(self._strips):
            return Strip.blank(width, self._palette.blank)
        return self._strips[row].adjust_cell_length(width, self._palette.blank)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines)


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
            pairs = (
                zip(reversed(one.text), reversed(other.text), strict=False)
                if from_end
                else zip(one.text, other.text, strict=False)
            )
            for a, b in pairs:
                if a != b:
                    break
                cells += 1
        break
    return cells
