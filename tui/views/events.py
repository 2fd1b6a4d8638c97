"""8 Events: what happened, newest first."""

from __future__ import annotations

from ranktop.clock import time_of_day
from tui.draw.spans import Span, line, plain
from tui.draw.table import Cell, Col, table
from tui.views.view import Frame, Page, Row

_COLUMNS = (
    Col("time", 8, align_left=True),
    Col("kind", 14, align_left=True, weight=1),
    Col("where", 14, align_left=True),
    Col("what", 10, align_left=True, grow=True),
)


class EventsView:
    """The log, findings, sources and marks in one stream, filtered by `/`."""

    key = "8"
    name = "events"

    def draw(self, frame: Frame) -> Page:
        keep = frame.filter.casefold()
        rows: list[list[Cell]] = []
        for happening in reversed(frame.events):
            if keep and keep not in f"{happening.kind} {happening.where} {happening.text}".casefold():
                continue
            rows.append(
                [
                    Span(time_of_day(happening.at), "muted"),
                    Span(happening.kind, "muted"),
                    Span(plain(happening.where), "strong"),
                    Span(plain(happening.text), happening.role),
                ]
            )
        header, body = table(_COLUMNS, rows, frame.width, frame.glyphs.more)
        nothing = (Row(line(Span("  nothing has happened since ranktop looks", "muted"))),)
        return Page((header,), tuple(Row(text_line) for text_line in body) or nothing)
