"""8 Events: what happened, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ranktop.clock import time_of_day
from ranktop.reconcile.wording import counted
from tui.draw.spans import Span, TextLine, fit, line, plain
from tui.draw.table import Col, Table
from tui.happening import BATCHES, Happening
from tui.views.view import EventTarget, Frame, Page, Row

_WIDEST_KIND = 20
_WIDEST_WHERE = 24


def _columns(events: Sequence[Happening]) -> tuple[Col, ...]:
    """As narrow as what stands in them: the rest is for what happened."""
    kind = min(_WIDEST_KIND, max([4, *(len(each.kind) for each in events)]))
    where = min(_WIDEST_WHERE, max([5, *(len(each.where) for each in events)]))
    return (
        Col("time", 8, align_left=True),
        Col("kind", kind, align_left=True, weight=1),
        Col("where", where, align_left=True),
        Col("what", 10, align_left=True, grow=True),
    )


class EventsView:
    """The log, findings, sources and marks in one stream, filtered by `/`. Batches come when the filter says so."""

    key = "8"
    name = "events"

    def draw(self, frame: Frame) -> Page:
        keep = frame.filter.casefold()
        asked = bool(keep) and any(keep in kind for kind in BATCHES)
        # A log is read in pieces, so its lines may come after what was seen meanwhile.
        events = sorted((*frame.events, *(frame.batches if asked else ())), key=_time_of)
        kept = [happening for happening in reversed(events) if not keep or keep in _words(happening)]
        shown = Table(_columns(kept), frame.width, frame.glyphs.more)
        rows = tuple(Row(partial(_line, happening, shown), EventTarget(happening)) for happening in kept)
        nothing = "  nothing matches the filter" if keep and events else "  nothing has happened since ranktop looks"
        hidden = 0 if asked else len(frame.batches)
        note = f"  {counted(hidden, 'log line')} of batches left out: the filter `batch` shows them" if hidden else ""
        notes = (fit(line(Span(note, "muted")), frame.width, frame.glyphs.more),) if note else ()
        return Page((*notes, shown.header), rows or (Row(line(Span(nothing, "muted"))),))


def _time_of(happening: Happening) -> float:
    return happening.at


def _words(happening: Happening) -> str:
    """What the filter looks for: also each rank of a line of several, and their server."""
    ranks = " ".join(rank for rank, _ in happening.ranks)
    return f"{happening.kind} {happening.where} {happening.text} {ranks} {happening.server or ''}".casefold()


def _line(happening: Happening, shown: Table) -> TextLine:
    return shown.row(
        [
            Span(time_of_day(happening.at), "muted"),
            Span(happening.kind, "muted"),
            Span(plain(happening.where), "strong"),
            Span(plain(happening.text), happening.role),
        ]
    )
