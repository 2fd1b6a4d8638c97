"""8 Events: what happened, newest first."""

from __future__ import annotations

from functools import partial

from ranktop.clock import time_of_day
from ranktop.reconcile.wording import counted
from tui.draw.spans import Span, TextLine, fit, line, plain
from tui.draw.table import Col, Table
from tui.eventlog import BATCHES, Happening
from tui.views.view import Frame, Page, Row

_COLUMNS = (
    Col("time", 8, align_left=True),
    Col("kind", 14, align_left=True, weight=1),
    Col("where", 15, align_left=True),
    Col("what", 10, align_left=True, grow=True),
)


class EventsView:
    """The log, findings, sources and marks in one stream, filtered by `/`. Batches come when the filter says so."""

    key = "8"
    name = "events"

    def draw(self, frame: Frame) -> Page:
        keep = frame.filter.casefold()
        shown = Table(_COLUMNS, frame.width, frame.glyphs.more)
        asked = bool(keep) and any(keep in kind for kind in BATCHES)
        # A log is read in pieces, so its lines may come after what was seen meanwhile.
        events = sorted((*frame.events, *(frame.batches if asked else ())), key=_time_of)
        rows = tuple(
            Row.later(partial(_line, happening, shown))
            for happening in reversed(events)
            if not keep or keep in f"{happening.kind} {happening.where} {happening.text}".casefold()
        )
        nothing = "  nothing matches the filter" if keep and events else "  nothing has happened since ranktop looks"
        hidden = 0 if asked else len(frame.batches)
        note = f"  {counted(hidden, 'log line')} of batches left out: the filter `batch` shows them" if hidden else ""
        head = (shown.header,) if not note else (fit(line(Span(note, "muted")), frame.width), shown.header)
        return Page(head, rows or (Row(line(Span(nothing, "muted"))),))


def _time_of(happening: Happening) -> float:
    return happening.at


def _line(happening: Happening, shown: Table) -> TextLine:
    return shown.row(
        [
            Span(time_of_day(happening.at), "muted"),
            Span(happening.kind, "muted"),
            Span(plain(happening.where), "strong"),
            Span(plain(happening.text), happening.role),
        ]
    )
