"""Enter on an event: all of its text. A log line or a finding's message is longer than its row."""

from __future__ import annotations

from ranktop.clock import time_of_day
from tui.draw.spans import Span, fit, line, paragraph, plain
from tui.happening import Happening, in_order
from tui.views.view import Frame, Page, Row

_MOST_LETTERS = 8000


class EventDetail:
    """As it was when it happened."""

    key = ""
    name = "event"

    def __init__(self, happening: Happening) -> None:
        self._happening = happening

    def draw(self, frame: Frame) -> Page:
        told, width = self._happening, frame.width
        head = line(
            Span(f" {time_of_day(told.at)}", "muted"),
            Span(f"   {plain(told.kind)}", "strong", True),
            Span(f"   {plain(told.where)}", "muted"),
        )
        lines = [head, line(" "), *paragraph(plain(told.text, _MOST_LETTERS), width, told.role)]
        if len(told.ranks) > 1:
            lines += [line(" "), *(each for when in _moments(told) for each in paragraph(when, width, "muted"))]
        return Page((), tuple(Row(fit(each, width, frame.glyphs.more)) for each in lines))


def _moments(told: Happening) -> list[str]:
    """Which ranks logged it at which second."""
    ranks: dict[str, list[str]] = {}
    for rank, at in sorted(told.ranks, key=lambda logged: logged[1]):
        ranks.setdefault(time_of_day(at), []).append(rank)
    return [f"{when}  {plain(', '.join(in_order(each)), _MOST_LETTERS)}" for when, each in ranks.items()]
