"""The whole span in one line: where it was quiet, where something was wrong, and where one looks now."""

from __future__ import annotations

from collections.abc import Sequence

from ranktop.clock import time_of_day
from ranktop.finding import SEVERITIES, Severity
from tui.draw.glyphs import Glyphs
from tui.draw.spans import Span, TextLine, line
from tui.timeline import Mark


def draw_strip(span: tuple[float, float], marks: Sequence[Mark], when: float, width: int, glyphs: Glyphs) -> TextLine:
    """Each cell carries the worst severity of its piece of time; the cursor stands where `when` is."""
    begin, end = f" {time_of_day(span[0])} ", f" {time_of_day(span[1])} "
    cells = max(1, width - len(begin) - len(end))
    here = _cell(when, span, cells)
    spans: list[Span] = [Span(begin, "muted")]
    for cell, severity in enumerate(severities(span, marks, cells)):
        if cell == here:
            spans.append(Span(glyphs.eighths[-1], "strong", True))
        elif severity is None:
            spans.append(Span(glyphs.rule, "faint"))
        else:
            spans.append(Span(glyphs.marks[severity], severity))
    return line(*spans, Span(end, "muted"))


def severities(span: tuple[float, float], marks: Sequence[Mark], cells: int) -> list[Severity | None]:
    """The worst severity that held in each cell's piece of the span."""
    worst: list[Severity | None] = [None] * cells
    for mark, until in zip(marks, [*(later.at for later in marks[1:]), span[1]], strict=False):
        if mark.severity is None:
            continue
        for cell in range(_cell(mark.at, span, cells), _cell(until, span, cells) + 1):
            known = worst[cell]
            if known is None or SEVERITIES.index(mark.severity) > SEVERITIES.index(known):
                worst[cell] = mark.severity
    return worst


def _cell(when: float, span: tuple[float, float], cells: int) -> int:
    length = max(span[1] - span[0], 1e-9)
    return max(0, min(cells - 1, int((when - span[0]) / length * cells)))
