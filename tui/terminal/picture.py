"""What stands on the terminal, cell by cell, so that of a new frame only what differs is sent.

Textual sends whole regions, the same text again with every layout, every piece of a line with its full style and a
reset, and every blank as a byte: some 9 kB for a view of 120x40, and half of that for nothing.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from itertools import compress, groupby
from operator import itemgetter, ne

from rich.cells import cell_len

from tui.terminal.sgr import PLAIN, Style, change, styled

_TOKEN = re.compile(r"\x1b\[(?:(\d+);(\d+)H|([0-9;]*)m)([^\x00-\x1f\x7f]*)|(\n)|(.)", re.DOTALL)
"""A move or a style and the text after it."""
_BLANKS = re.compile(r" {9,}")
_NEAR_CELLS = 6
"""About the bytes that a move of the cursor takes: cells that do not differ are sent along when they are fewer."""

_ERASERS = ("xterm", "tmux", "rxvt", "linux", "alacritty", "foot", "wezterm", "konsole", "vte", "gnome", "putty")
"""Terminals that know ECH (ECMA-48, erase character) and erase to the present background. GNU screen does not."""

Cell = tuple[str, Style]
"""What stands in a cell and how; the right half of a wide character is an empty text."""


def erases_to_background(environment: Mapping[str, str]) -> bool:
    """Whether blanks may be written as an erasure. Inside tmux always, whatever it calls itself."""
    return "TMUX" in environment or environment.get("TERM", "").startswith(_ERASERS)


class Picture:
    """The cells that the terminal shows, as far as they are known. `erases`: blanks may be written as an erasure."""

    def __init__(self, *, erases: bool) -> None:
        self._erases = erases
        self._rows: dict[int, list[Cell | None]] = {}

    def forget(self) -> None:
        """Nothing is known any more: after a change of size, or when something else wrote to the terminal."""
        self._rows.clear()

    def update(self, text: str) -> str:
        """What to send instead of a frame of Textual's. Anything that is no frame goes through as it is."""
        if not _FRAME.match(text):
            return text
        found = _pieces(text)
        if found is None:
            self.forget()
            return text
        pieces, end = found
        sent: list[str] = []
        shown = PLAIN
        for row, column, cells in pieces:
            for begin, cells_there in self._news(row, column, cells):
                sent.append(f"\x1b[{row};{begin}H")
                for style, run in groupby(cells_there, key=_style_of):
                    sent += (change(shown, style), self._written("".join([sign for sign, _ in run])))
                    shown = style
        return "".join(sent) + change(shown, PLAIN) + end

    def _news(self, row: int, column: int, cells: list[Cell]) -> Iterator[tuple[int, list[Cell]]]:
        """(column, cells) of what differs in a row, which is known from now on."""
        known = self._rows.setdefault(row, [])
        first, last = column - 1, column - 1 + len(cells)
        known += [None] * (last - len(known))
        old = known[first:last]
        if old != cells:
            known[first:last] = cells
            for begin, end in _differing(old, cells):
                yield column + begin, cells[begin:end]

    def _written(self, text: str) -> str:
        return _BLANKS.sub(_erasure, text) if self._erases else text


_FRAME = re.compile(r"\x1b\[\d+;\d+H")


_sign_of, _style_of = itemgetter(0), itemgetter(1)


def _erasure(blanks: re.Match[str]) -> str:
    count = len(blanks[0])
    return f"\x1b[{count}X\x1b[{count}C"


def _pieces(frame: str) -> tuple[list[tuple[int, int, list[Cell]]], str] | None:
    """(row, column, cells) of every stretch of text, and the last move, which places the cursor. None: not understood.

    A line feed only goes before a move, and does nothing then.
    """
    pieces: list[tuple[int, int, list[Cell]]] = []
    cells: list[Cell] = []
    style, end = PLAIN, ""
    for row, column, parameters, text, feed, other in _TOKEN.findall(frame):
        if other:
            return None
        if row:
            end, cells = f"\x1b[{row};{column}H", []
            pieces.append((int(row), int(column), cells))
        elif not feed:
            style = styled(style, parameters)
        if text:
            end = ""
            _append(cells, text, style)
    return pieces, end


def _append(cells: list[Cell], text: str, style: Style) -> None:
    if cells and not text.isascii() and cell_len(text[0]) == 0:
        cells[-1] = (cells[-1][0] + text[0], cells[-1][1])
        text = text[1:]
    cells += _cells(text, style)


@functools.lru_cache(maxsize=1024)
def _cells(text: str, style: Style) -> tuple[Cell, ...]:
    """Most pieces of a frame stood in the one before it, too."""
    if text.isascii():
        return tuple([_cell(sign, style) for sign in text])
    cells: list[Cell] = []
    for sign in text:
        length = cell_len(sign)
        if length == 0 and cells:
            cells[-1] = (cells[-1][0] + sign, cells[-1][1])
        elif length:
            cells += [_cell(sign, style), *[_cell("", style)] * (length - 1)]
    return tuple(cells)


@functools.lru_cache(maxsize=1024)
def _cell(sign: str, style: Style) -> Cell:
    """Of the thousands on a screen few differ."""
    return sign, style


def _differing(old: list[Cell | None], new: list[Cell]) -> list[tuple[int, int]]:
    """Half-open ranges that differ, those that are near each other as one; all of it where a wide character stands."""
    if "" in map(_sign_of, new) or "" in map(_sign_of, filter(None, old)):
        return [(0, len(new))]
    ranges: list[tuple[int, int]] = []
    for place in compress(range(len(new)), map(ne, old, new)):
        if ranges and place - ranges[-1][1] <= _NEAR_CELLS:
            ranges[-1] = (ranges[-1][0], place + 1)
        else:
            ranges.append((place, place + 1))
    return ranges
