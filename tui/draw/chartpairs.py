"""Charts two by two, as many rows of them as it takes."""

from __future__ import annotations

from collections.abc import Sequence

from tui.draw.beside import beside
from tui.draw.chart import Chart, draw_chart
from tui.draw.glyphs import Glyphs
from tui.draw.spans import TextLine


def chart_pairs(charts: Sequence[Chart], width: int, height: int, glyphs: Glyphs) -> tuple[TextLine, ...]:
    """Lines of `width` cells at most; each chart has `height` of them."""
    half = (width - 3) // 2
    lines: list[TextLine] = []
    for first in range(0, len(charts), 2):
        pair = [(draw_chart(chart, half, height, glyphs), half) for chart in charts[first : first + 2]]
        lines += beside(pair, glyphs.more)
    return tuple(lines)
