"""6 PD: prefill and decode: who is registered, who transfers, who fails."""

from __future__ import annotations

from tui.draw.spans import Span, fit, line, plain
from tui.draw.table import Cell, Col, table
from tui.views.related import related
from tui.views.values import seen_cell
from tui.views.view import Frame, Page, RankTarget, Row

_COLUMNS = (
    Col("server", 21, align_left=True, weight=1),
    Col("role", 8, align_left=True),
    Col("rank", 14, align_left=True),
    Col("registered", 10),
    Col("transfers", 10),
    Col("failures", 9),
    Col("why", 8, align_left=True, grow=True),
)


class PdView:
    """A row a rank of every prefill and decode server on this node."""

    key = "6"
    name = "pd"

    def draw(self, frame: Frame) -> Page:
        rows = [*related(frame, "PD-"), Row(line(" " * frame.width))]
        roles = {server.id: server.role for server in frame.verdict.servers if server.role in ("prefill", "decode")}
        ranks = [rank for rank in frame.verdict.ranks if rank.server in roles]
        if not ranks:
            text = "  no prefill or decode server on this node: every server here is unified"
            rows.append(Row(fit(line(Span(text, "muted")), frame.width)))
            return Page((), tuple(rows))
        cells: list[list[Cell]] = []
        for rank in ranks:
            shown = [rank.line(name) for name in ("pd.registered", "pd.transfers", "pd.failures")]
            why = next((each.detail for each in shown if each.seen is None and each.detail), "")
            cells.append(
                [
                    Span(plain(rank.server), "muted"),
                    roles[rank.server] or "",
                    Span(rank.rank, "strong"),
                    *(seen_cell(each, frame.glyphs.missing) for each in shown),
                    Span(plain(why), "muted"),
                ]
            )
        header, body = table(_COLUMNS, cells, frame.width, frame.glyphs.more)
        rows.append(Row(header))
        rows += [
            Row(text_line, RankTarget(rank.server, rank.rank)) for text_line, rank in zip(body, ranks, strict=True)
        ]
        return Page((), tuple(rows))
