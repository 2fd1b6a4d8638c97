"""9 Sources: every source with its state, the age of its last value, and what it costs; and what ranktop costs."""

from __future__ import annotations

from ranktop.clock import duration
from tui.draw.own import own_lines
from tui.draw.spans import Span, plain
from tui.draw.table import Cell, Col, table
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


class SourcesView:
    """Where every number comes from, and which numbers are blind now."""

    key = "9"
    name = "sources"

    def draw(self, frame: Frame) -> Page:
        now, missing = frame.verdict.sample.at_unix_seconds, frame.glyphs.missing
        rows: list[list[Cell]] = []
        for state in frame.verdict.sample.sources:
            role = _ROLES[state.state]
            age = missing if state.at_unix_seconds is None else duration(max(0.0, now - state.at_unix_seconds))
            took = missing if state.took_seconds is None else f"{state.took_seconds * 1000:.1f}"
            rows.append(
                [
                    Span(state.name, "strong"),
                    Span(plain(state.server or "this node"), "muted"),
                    Span(state.state, role),
                    Span(age, role),
                    Span(duration(state.period_seconds), "muted"),
                    Span(took, "muted"),
                    Span(plain(state.detail), role),
                ]
            )
        header, body = table(_COLUMNS, rows, frame.width, frame.glyphs.more)
        own = own_lines(frame.own, frame.width, missing, frame.glyphs.more) if frame.own is not None else ()
        return Page((*own, header), tuple(Row(text_line) for text_line in body))
