"""Line charts in braille or ASCII: axes with units, a plan line, gaps drawn as gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ranktop.clock import duration
from tui.draw.glyphs import Glyphs
from tui.draw.spans import Span, TextLine, fit, left, line, right

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a braille cell: four rows of two dots (Unicode 16, Braille Patterns)."""
_AXIS_WIDTH = 9


class Chart(NamedTuple):
    """One chart. `label` writes a value of the axis with its unit; `top` fixes the scale (else the largest value)."""

    title: str
    values: Sequence[float]
    label: Callable[[float], str]
    top: float | None = None
    mark: float | None = None
    """A plan or a limit, drawn as a rule through the chart."""
    mark_name: str = "plan"
    unit: float = 1.0
    """The axis ends at a round number of these."""


def draw_chart(chart: Chart, width: int, height: int, glyphs: Glyphs) -> tuple[TextLine, ...]:
    """`height` lines of `width` cells: the title with the newest value and the span, then the plot beside its axis.

    Values are a second apart.
    """
    plot_width, plot_height = max(1, width - _AXIS_WIDTH - 2), max(1, height - 1)
    known = [value for value in chart.values if not math.isnan(value)]
    newest = chart.values[-1] if chart.values and not math.isnan(chart.values[-1]) else None
    now = chart.label(newest) if newest is not None else glyphs.missing
    head = line(Span(f" {chart.title} ", "muted"), Span(now, "strong"))
    seconds = max(len(chart.values), plot_width * _across(glyphs))
    span = f" last {duration(seconds)}" if known else ""
    room = width - sum(len(each.text) for each in head) - len(span)
    title = fit(line(*head, *((" " * room, Span(span, "muted")) if room >= 0 else ())), width, glyphs.more)
    if not known:
        empty = line(Span(left("  nothing seen yet", width, glyphs.more), "muted"))
        return (title, empty, *(line(" " * width) for _ in range(plot_height - 1)))
    top = chart.top if chart.top is not None else chart.unit * _round_up(max(*known, chart.mark or 0.0) / chart.unit)
    rows = _plot(chart.values, top, plot_width, plot_height, glyphs)
    marked = None
    if chart.mark is not None and top > 0:
        marked = plot_height - 1 - min(plot_height - 1, int(chart.mark / top * plot_height))
    lines = [title]
    for number, row in enumerate(rows):
        axis = chart.label(top) if number == 0 else chart.label(0.0) if number == plot_height - 1 else ""
        axis = chart.mark_name if number == marked and 0 < number < plot_height - 1 else axis
        spans = [Span(right(axis, _AXIS_WIDTH), "muted"), Span(f" {glyphs.tick}", "faint")]
        spans += _row(row, number == marked, glyphs)
        lines.append(line(*spans))
    return tuple(lines)


def _across(glyphs: Glyphs) -> int:
    """Points beside each other in a cell."""
    return 1 if glyphs.eighths == " #" else 2


def _row(row: str, is_marked: bool, glyphs: Glyphs) -> list[Span]:
    if not is_marked:
        return [Span(row, "accent")]
    spans: list[Span] = []
    for sign in row:
        empty = sign in (" ", "\u2800")
        spans.append(Span(glyphs.rule, "warn") if empty else Span(sign, "accent"))
    return spans


def _plot(values: Sequence[float], top: float, width: int, height: int, glyphs: Glyphs) -> list[str]:
    """The newest values, two to a cell, on a grid of four dots a cell; ASCII has one sign a cell."""
    across, dense = _across(glyphs), glyphs.eighths != " #"
    down = 4 if dense else 1
    columns = resample(values, width * across)
    cells = [[0] * width for _ in range(height)]
    before: int | None = None
    for x, value in enumerate(columns):
        if math.isnan(value):
            before = None
            continue
        share = max(0.0, min(1.0, value / top)) if top > 0 else 0.0
        y = height * down - 1 - min(height * down - 1, int(share * height * down))
        # A step between two values is drawn, so that a line stays a line.
        for dot in range(min(y, before if before is not None else y), max(y, before if before is not None else y) + 1):
            cells[dot // down][x // across] |= _DOTS[dot % down][x % across] if dense else 1
        before = y
    if dense:
        return ["".join(chr(0x2800 + bits) for bits in row) for row in cells]
    return ["".join("*" if bits else " " for bits in row) for row in cells]


def resample(values: Sequence[float], count: int) -> list[float]:
    """So many points over the whole span, each the largest of its piece, as peaks are what one looks for.

    Fewer values than points keep one point each and leave the left empty.
    """
    if len(values) <= count:
        return [math.nan] * (count - len(values)) + list(values)
    points: list[float] = []
    for point in range(count):
        piece = values[point * len(values) // count : max((point + 1) * len(values) // count, 1)]
        known = [value for value in piece if not math.isnan(value)]
        points.append(max(known) if known else math.nan)
    return points


def _round_up(value: float) -> float:
    """The next 1, 2, 2.5 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if value <= step * power * 1.0000001)
