"""Lines that repaint only what changed. Every live part of the screen is one of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip

from tui.draw.spans import Span, TextLine
from tui.palette import Palette


class AsciiBar(ScrollBarRender):
    """Whole cells of colour, where Textual would end the bar in eighths of one."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "]


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

    def __init__(self, palette: Palette, pointer: str = " ", *, id: str | None = None) -> None:
        """`pointer` is the sign that stands before the cursor's row, so that it is not told by colour alone."""
        super().__init__(id=id)
        self._use(palette)
        self._pointer = pointer
        self._lines: Sequence[TextLine] = ()
        self._cursor: int | None = None
        self._painted: dict[int, tuple[TextLine, Strip]] = {}
        """Rows that were looked at since the last `show`: what they were drawn from, and how."""

    def repaint_with(self, palette: Palette) -> None:
        """Another theme: every strip anew."""
        self._use(palette)
        self._painted.clear()
        self.refresh()

    def show(self, lines: Sequence[TextLine], cursor: int | None = None) -> None:
        """Draw these lines, touching only rows whose text, roles or cursor differ from what stands there.

        Of lines that are not on the screen none is asked for.
        """
        count, cursor_before, painted = len(self._lines), self._cursor, self._painted
        self._lines, self._cursor, self._painted = lines, cursor, {}
        if len(lines) != count:
            self.virtual_size = Size(self.size.width, len(lines))
            self.refresh(layout=self.styles.is_auto_height)
            return
        moved = {cursor_before, cursor} if cursor != cursor_before else frozenset[int | None]()
        top, (width, height) = self.scroll_offset.y, self.size
        differing: list[Region] = []
        for row in range(top, min(top + height, len(lines))):
            before = painted.get(row)
            if before is None:
                differing.append(Region(0, row - top, width, 1))
            elif before[0] == lines[row] and row not in moved:
                self._painted[row] = before
            else:
                first, last = changed_cells(before[1], self._strip(row))
                differing.append(Region(first, row - top, last - first, 1))
        if differing:
            self.refresh(*differing)

    def show_row(self, row: int) -> None:
        """Scroll so far that the row is on the screen."""
        top, height = self.scroll_offset.y, self.size.height
        if row < top:
            self.scroll_to(y=row, animate=False)
        elif row >= top + height > 0:
            self.scroll_to(y=row - height + 1, animate=False)

    def render_line(self, y: int) -> Strip:
        return self._rendered(y + self.scroll_offset.y, self.size.width)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Where nothing but a scroll bar stands around them, which covers the last cell: without Textual's look at each
        line for borders, tints and links, which takes a third of a frame."""
        if self.styles.gutter:
            return super().render_lines(crop)
        top, width = self.scroll_offset.y, self.size.width
        strips = [self._rendered(y + top, width) for y in range(crop.y, crop.bottom)]
        for one in self.get_line_filters():
            strips = [strip.apply_filter(one, self.background_colors[1]) for strip in strips]
        return [strip.crop(crop.x, crop.right) for strip in strips]

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Without the one that makes true colours of a terminal's own: a theme has no others, and it would look
        through every line of every frame."""
        return [one for one in super().get_line_filters() if not isinstance(one, ANSIToTruecolor)]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines)

    def on_click(self, event: object) -> None:
        row = getattr(event, "y", 0) + self.scroll_offset.y
        if row < len(self._lines):
            self.post_message(self.Clicked(self, row))

    def _use(self, palette: Palette) -> None:
        self._palette = palette
        self._cursor_palette = palette.on("panel")

    def _rendered(self, row: int, width: int) -> Strip:
        if row >= len(self._lines):
            return Strip.blank(width, self._palette.blank)
        return self._strip(row).adjust_cell_length(width, self._palette.blank)

    def _strip(self, row: int) -> Strip:
        known = self._painted.get(row)
        if known is not None:
            return known[1]
        text_line = self._lines[row]
        is_cursor = row == self._cursor
        palette = self._cursor_palette if is_cursor else self._palette
        strip = palette.strip(pointed(text_line, self._pointer) if is_cursor else text_line)
        self._painted[row] = text_line, strip
        return strip


def pointed(text_line: TextLine, pointer: str) -> TextLine:
    """The row with the pointer in its first cell, where that is blank."""
    if not text_line or not text_line[0].text.startswith(" "):
        return text_line
    first = text_line[0]
    return (Span(pointer, "accent", True), first._replace(text=first.text[1:]), *text_line[1:])


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
