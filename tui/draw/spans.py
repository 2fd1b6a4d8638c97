"""Text with roles instead of colours: what the drawing functions return and the line widgets paint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from ranktop.folding import folded


class Span(NamedTuple):
    """A piece of a line. `role` names a colour of the theme."""

    text: str
    role: str = "text"
    bold: bool = False


TextLine = tuple[Span, ...]


def line(*spans: Span | str) -> TextLine:
    """A line from spans and plain strings. Neighbours of one style are merged, and blanks take the style beside them:
    every change of style costs some 25 bytes on the way to the terminal."""
    merged: list[Span] = []
    text, role, bold = "", "text", False
    for item in spans:
        own_text, own_role, own_bold = (item, "text", False) if isinstance(item, str) else item
        if not own_text:
            continue
        if (own_role == role and own_bold == bold) or (text and own_text.isspace()):
            text += own_text
        elif not text or text.isspace():
            text, role, bold = text + own_text, own_role, own_bold
        else:
            merged.append(Span(text, role, bold))
            text, role, bold = own_text, own_role, own_bold
    if text:
        merged.append(Span(text, role, bold))
    return tuple(merged)


def width(text_line: Iterable[Span]) -> int:
    """Cells that a line takes."""
    return sum(cell_len(span.text) for span in text_line)


def right(text: str, cells: int) -> str:
    """Right-aligned in exactly so many cells; what does not fit is cut from the left, behind a `<`."""
    if text.isascii() and len(text) <= cells:
        return text.rjust(cells)
    length = cell_len(text)
    if length <= cells:
        return " " * (cells - length) + text
    return "<" + text[-(cells - 1) :] if cells > 1 else text[:cells]


def left(text: str, cells: int, more: str) -> str:
    """Left-aligned in exactly so many cells; what does not fit ends in `more`."""
    if text.isascii() and len(text) <= cells:
        return text.ljust(cells)
    if cell_len(text) <= cells:
        return set_cell_size(text, cells)
    return set_cell_size(set_cell_size(text, max(0, cells - cell_len(more))) + more, cells)


def spread(begin: TextLine, end: TextLine, cells: int, more: str) -> TextLine:
    """Two ends of one line. Where both do not fit, the right end wins and the left one is cut with `more`."""
    room = cells - width(end) - 1
    return line(*fit(begin, max(0, room), more), " ", *end)


def fit(text_line: Iterable[Span], cells: int, more: str) -> TextLine:
    """Exactly so many cells: padded with spaces, or cut with `more` at the end."""
    taken: list[Span] = []
    room = cells
    for span in text_line:
        length = cell_len(span.text)
        if length <= room:
            taken.append(span)
            room -= length
            continue
        taken.append(span._replace(text=left(span.text, room, more)))
        return line(*taken)
    return line(*taken, " " * room)


def paragraph(text: str, cells: int, role: str = "text") -> list[TextLine]:
    """All of the text, in lines of so many cells that begin and end with a blank."""
    return [line(Span(f" {piece}", role)) for piece in folded(text, max(20, cells - 2))]


def plain(text: str, limit: int = 400) -> str:
    """Text from outside, made harmless: no control sequences, no bidi tricks, nothing invisible, bounded."""
    text = text[:limit]
    return text if text.isprintable() else "".join(map(_harmless, text))


def _harmless(letter: str) -> str:
    """Controls and odd blanks become a space. Bidi marks, zero-width characters and lone surrogates go."""
    if letter.isprintable():
        return letter
    return " " if letter.isspace() or letter < "\xa0" else ""
