"""2 Budget: planned, seen and difference of everything one rank holds, with the source of each number."""

from __future__ import annotations

import textwrap

from ranktop.reconcile.verdict import Line, NodeVerdict, RankVerdict, Verdict
from tui.draw.glyphs import Glyphs
from tui.draw.spans import Span, TextLine, fit, line, plain
from tui.draw.table import Cell, Col, Table
from tui.views.formulas import formula
from tui.views.values import difference_cell, seen_cell, status_role, value
from tui.views.view import Frame, Page, RankTarget, Row, gone_ranks

_COLUMNS = (
    Col("line", 17, align_left=True),
    Col("planned", 12),
    Col("seen", 12),
    Col("difference", 11),
    Col("status", 7, align_left=True, weight=2),
    Col("source", 9, align_left=True, weight=3),
    Col("why", 20, align_left=True, grow=True, weight=4),
)
_GROUPS = (("hbm.", "GPU memory (GiB)"), ("host.", "host memory (decimal GB)"), ("numa.", ""), ("layers.", ""))


class BudgetView:
    """The waterfall of one rank, then the node. `<` and `>` choose the rank."""

    key = "2"
    name = "budget"

    def draw(self, frame: Frame) -> Page:
        rank = chosen_rank(frame.verdict, frame.rank)
        if rank is None:
            return Page((), (Row(line(Span("  no rank yet", "muted"))),))
        gone = (rank.server, rank.rank) in gone_ranks(frame.verdict)
        lines: list[tuple[str, tuple[Line, ...]]] = [
            (title, tuple(shown for shown in rank.lines if shown.line.startswith(prefix))) for prefix, title in _GROUPS
        ]
        rows: list[list[Cell] | str] = []
        for title, members in lines:
            if title and members:
                rows.append(title)
            rows += [_cells(shown, frame, gone) for shown in members]
        rows.append("this node")
        rows += [_cells(shown, frame, False) for shown in _node_lines(frame.verdict.node)]
        shown = Table(_COLUMNS, frame.width, frame.glyphs.more)
        page = [one for row in rows for one in ([_title(row, frame)] if isinstance(row, str) else _drawn(row, shown))]
        head = (
            _rank_line(rank, frame.width, frame.glyphs),
            _waterfall(rank, gone, frame.width, frame.glyphs),
            shown.header,
        )
        return Page(head, tuple(Row(text_line) for text_line in page))


def chosen_rank(verdict: Verdict, wanted: RankTarget | None) -> RankVerdict | None:
    """The rank that was chosen, else the first."""
    chosen = (rank for rank in verdict.ranks if wanted == RankTarget(rank.server, rank.rank))
    return next(chosen, verdict.ranks[0] if verdict.ranks else None)


def _node_lines(node: NodeVerdict) -> tuple[Line, ...]:
    return tuple(shown for shown in node.lines if shown.unit == "bytes")


def _cells(shown: Line, frame: Frame, gone: bool) -> list[Cell]:
    missing = frame.glyphs.missing
    why = formula(shown.line, frame.verdict, frame.rank) if shown.planned is not None else ""
    return [
        Span(shown.line, "strong" if shown.status in ("over", "under") else "text"),
        Span(value(shown, shown.planned, missing), "muted" if shown.planned is None else "text"),
        seen_cell(shown, missing, gone),
        difference_cell(shown, missing),
        Span(shown.status, status_role(shown)),
        Span(shown.source or missing, "muted"),
        Span(plain(why or shown.detail), "muted"),
    ]


def _drawn(cells: list[Cell], shown: Table) -> list[TextLine]:
    """One line, and more where the reason is longer than its column."""
    *others, why = cells
    told = why if isinstance(why, Span) else Span(why)
    room = shown.room_of(_COLUMNS[-1].title)
    pieces = (textwrap.wrap(told.text, room) if room else []) or [""]
    blanks: list[Cell] = [""] * len(others)
    return [
        shown.row([*(blanks if number else others), told._replace(text=piece)]) for number, piece in enumerate(pieces)
    ]


def _title(text: str, frame: Frame) -> TextLine:
    return fit(line(Span(f" {text}", "accent")), frame.width, frame.glyphs.more)


def _rank_line(rank: RankVerdict, width: int, glyphs: Glyphs) -> TextLine:
    words = [f"pid {rank.pid}" if rank.pid else "no process", f"gpu {rank.gpu}" if rank.gpu is not None else "no GPU"]
    return fit(
        line(
            " ",
            Span(rank.rank, "strong", True),
            Span(f"  {plain(rank.server)}  {'  '.join(words)}   < > rank", "muted"),
        ),
        width,
        glyphs.more,
    )


_PARTS = (("weights", "hbm.weights", "bar"), ("L1", "hbm.kv", "accent"), ("graphs", "hbm.graphs", "info"))


def _waterfall(rank: RankVerdict, gone: bool, width: int, glyphs: Glyphs) -> TextLine:
    """GPU memory as one bar: weights, L1 pool, graphs, the rest, and what is free."""
    total = rank.line("hbm.total").seen
    if not total:
        return line(" " * width)
    cells = max(10, min(60, width - 69))
    if gone:
        told = Span(" nothing of this GPU is held by the rank: its process is gone", "muted")
        return fit(line(Span(" HBM ", "muted"), Span(glyphs.empty * cells, "faint"), told), width, glyphs.more)
    spans: list[Span | str] = [Span(" HBM ", "muted")]
    legend: list[Span | str] = []
    left = cells
    for fill, (name, part, role) in zip(glyphs.parts, (*_PARTS, ("rest", "hbm.rest", "muted")), strict=True):
        seen = rank.line(part).seen
        if seen is None or seen <= 0:
            continue
        taken = min(left, round(seen / total * cells))
        spans.append(Span(fill * taken, role))
        legend += [Span(f" {fill} {name} ", role), f"{seen / (1 << 30):.1f}"]
        left -= taken
    spans.append(Span(glyphs.empty * left, "faint"))
    return fit(line(*spans, *legend, Span(f" of {total / (1 << 30):.1f} GiB", "muted")), width, glyphs.more)
