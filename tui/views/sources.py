"""9 Sources: every source with its state, the age of its last value, and what it costs; and what ranktop costs."""

from __future__ import annotations

from collections.abc import Sequence

from ranktop.clock import duration
from ranktop.folding import folded
from ranktop.sample import SourceState
from tui.draw.own import own_lines
from tui.draw.spans import Span, TextLine, fit, line, plain
from tui.draw.table import Cell, Col, Table
from tui.eventlog import STATE_WORDS
from tui.views.view import Frame, Page, Row

_COLUMNS = (
    Col("source", 12, align_left=True),
    Col("server", 21, align_left=True, weight=1),
    Col("state", 8, align_left=True),
    Col("age", 6),
    Col("every", 6, weight=3),
    Col("took ms", 8, weight=2),
    Col("what came back", 24, align_left=True, grow=True),
)
_ROLES = {"ok": "text", "no_data": "muted", "stale": "warn", "error": "warn"}

_NARROWEST = 36
"""Cells of the last column from which on its text is wrapped there, and not on lines of its own below."""


def _columns(sources: Sequence[SourceState]) -> list[Col]:
    """Where there are several servers, which one it is of stays on the narrowest screen."""
    servers = {state.server for state in sources if state.server is not None}
    if len(servers) < 2:
        return list(_COLUMNS)
    wide = min(21, max(9, *map(len, servers)))
    return [each._replace(width=wide, weight=0) if each.title == "server" else each for each in _COLUMNS]


class SourcesView:
    """Where every number comes from, and which numbers are blind now."""

    key = "9"
    name = "sources"

    def draw(self, frame: Frame) -> Page:
        shown = Table(_columns(frame.verdict.sample.sources), frame.width, frame.glyphs.more)
        more, missing = frame.glyphs.more, frame.glyphs.missing
        own = own_lines(frame.own, frame.width, missing, more) if frame.own is not None else ()
        rows = [Row(text_line) for state in frame.verdict.sample.sources for text_line in _lines(state, shown, frame)]
        return Page((*own, shown.header), tuple(rows))


def _lines(state: SourceState, shown: Table, frame: Frame) -> list[TextLine]:
    """One line, and more where what came back is longer: it is the reason why a column is empty."""
    now, missing = frame.verdict.sample.at_unix_seconds, frame.glyphs.missing
    role = _ROLES[state.state]
    age = missing if state.at_unix_seconds is None else duration(max(0.0, now - state.at_unix_seconds))
    took = missing if state.took_seconds is None else f"{state.took_seconds * 1000:.1f}"
    told = plain(state.detail).removeprefix(f"{state.server} ")
    room = shown.room_of(_COLUMNS[-1].title)
    is_below = len(told) > room and room < _NARROWEST
    pieces = folded(told, max(8, frame.width - 4) if is_below else room) or [""]
    cells: list[Cell] = [
        Span(state.name, "strong"),
        Span(plain(state.server or "this node"), "muted"),
        Span(STATE_WORDS.get(state.state, state.state), role),
        Span(age, role),
        Span(duration(state.period_seconds), "muted"),
        Span(took, "muted"),
    ]
    if is_below:
        below = (line("   ", Span(piece, role)) for piece in pieces)
        return [shown.row([*cells, ""]), *(fit(one, frame.width, frame.glyphs.more) for one in below)]
    first, *others = pieces
    blanks: list[Cell] = [""] * len(cells)
    return [shown.row([*cells, Span(first, role)]), *(shown.row([*blanks, Span(piece, role)]) for piece in others)]
