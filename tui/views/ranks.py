"""1 Ranks: the node in three lines, every rank, and what is wrong."""

from __future__ import annotations

from tui.draw.rule import draw_rule
from tui.draw.spans import TextLine, line
from tui.views.finding_rows import draw_findings, draw_findings_header
from tui.views.node_rows import draw_host, draw_sources, draw_tiers
from tui.views.rank_rows import draw_grid
from tui.views.view import Frame, Page, most_rows, rows_of_both


class RanksView:
    """The first look."""

    key = "1"
    name = "ranks"

    def draw(self, frame: Frame) -> Page:
        verdict, width, glyphs = frame.verdict, frame.width, frame.glyphs
        grid = draw_grid(verdict, width, glyphs, frame.sort, frame.filter, frame.columns, margin=1)
        head: tuple[TextLine, ...] = (
            draw_host(verdict, width, glyphs),
            draw_tiers(verdict, width, glyphs),
            draw_sources(verdict.sample.sources, verdict.sample.at_unix_seconds, width, glyphs),
            draw_rule(grid.order, width, glyphs),
            grid.header,
        )
        page = Page(
            head,
            grid.rows,
            (line(" " * width), draw_findings_header(verdict, width, glyphs, grid.legend)),
        )
        whole = page._replace(tail=draw_findings(verdict, width, glyphs, frame.differences))
        if frame.height is None:
            return whole
        both = rows_of_both(frame.height, whole)
        if len(whole.rows) + len(whole.tail or ()) <= both:
            return whole
        room = both - min(len(whole.rows), most_rows(frame.height, whole))
        return page._replace(tail=draw_findings(verdict, width, glyphs, frame.differences, room))
