"""Enter on a rank: everything of it, with charts of the last quarter of an hour."""

from __future__ import annotations

from tui.draw import numbers
from tui.draw.chart import Chart
from tui.draw.chartpairs import chart_pairs
from tui.draw.spans import line
from tui.views.budget import BudgetView
from tui.views.related import finding_row
from tui.views.view import Frame, Page, RankTarget, Row

_CHART_HEIGHT = 6


class RankDetail:
    """Not one of the nine: opened from a row, closed by escape."""

    key = ""
    name = "rank"

    def __init__(self, target: RankTarget) -> None:
        self._target = target

    def draw(self, frame: Frame) -> Page:
        frame = frame._replace(rank=self._target)
        page = BudgetView().draw(frame)
        own = [
            finding_row(finding, frame)
            for finding in frame.verdict.findings
            if finding.server == self._target.server and self._target.rank in finding.ranks
        ]
        *head, titles = page.head
        return page._replace(head=tuple(head), rows=(*own, *self._charts(frame), Row(titles), *page.rows))

    def _charts(self, frame: Frame) -> tuple[Row, ...]:
        def trail(name: str) -> Chart:
            title, label, unit = _CHARTS[name]
            return Chart(title, frame.trails.values(*self._target, name), label, unit=unit)

        charts = chart_pairs([trail(name) for name in _CHARTS], frame.width, _CHART_HEIGHT, frame.glyphs)
        return tuple(Row(text_line) for text_line in (*charts, line(" " * frame.width)))


def _gib(value: float) -> str:
    return f"{value / numbers.GIB:.1f} GiB"


def _size(value: float) -> str:
    return numbers.size(value, "")


def _rate(value: float) -> str:
    return numbers.rate(value, "")


def _tokens(value: float) -> str:
    return f"{value:,.0f}"


_CHARTS = {
    "hbm.process": ("GPU memory of the process", _gib, numbers.GIB),
    "host.anon": ("anonymous host memory", _size, 1.0),
    "l1.used": ("L1 tokens used", _tokens, 1.0),
    "l2.used": ("L2 tokens used", _tokens, 1.0),
    "rate.backup": ("L1>L2 backup", _rate, 1.0),
    "rate.load_back": ("L2>L1 load-back", _rate, 1.0),
}
