"""2 Budget: planned, seen and difference of everything one rank holds, with the source of each number."""

from __future__ import annotations

from ranktop.folding import folded
from ranktop.reconcile.gone import gone_ranks
from ranktop.reconcile.verdict import Line, NodeVerdict, RankVerdict, Verdict
from tui.draw.glyphs import Glyphs
from tui.draw.rule import draw_rule
from tui.draw.spans import Span, TextLine, fit, line, plain
from tui.draw.table import Cell, Col, Table
from tui.views.formulas import formula
from tui.views.values import difference_cell, seen_cell, status_role, value
from tui.views.view import Frame, LineTarget, Page, RankTarget, Row

_COLUMNS = (
    Col("line", 17, align_left=True),
    Col("planned", 12),
    Col("seen", 12),
    Col("difference", 11),
    Col("status", 7, align_left=True, weight=2),
    Col("source", 9, align_left=True, weight=3),
    Col("why", 20, align_left=True, grow=True, weight=4),
)
_WHY = _COLUMNS[-1].title
_BELOW = 2
"""Lines for the reason of the row under the cursor, on screens that have no column for it."""
_HINT = "up and down choose a line; where its numbers come from stands here"
NOTHING_MORE = "nothing more is told about it"
_GROUPS = (("hbm.", "GPU memory (GiB)"), ("host.", "host memory (decimal GB)"), ("numa.", ""), ("layers.", ""))


class BudgetView:
    """The waterfall of one rank, then the node. `<` and `>` choose the rank."""

    key = "2"
    name = "budget"

    def draw(self, frame: Frame) -> Page:
        rank = chosen_rank(frame.verdict, frame.rank)
        if rank is None:
            return Page((), (Row(line(Span("  no rank yet", "muted"))),))
        owner = RankTarget(rank.server, rank.rank)
        gone = (rank.server, rank.rank) in gone_ranks(frame.verdict)
        shown = Table(_COLUMNS, frame.width, frame.glyphs.more)
        rows: list[Row] = []
        for prefix, title in _GROUPS:
            members = [one for one in rank.lines if one.line.startswith(prefix)]
            rows += [_title(title, frame)] if title and members else ()
            rows += [row for one in members for row in _rows(one, owner, frame, shown, gone)]
        rows.append(_title("this node", frame))
        rows += [row for one in _node_lines(frame.verdict.node) for row in _rows(one, None, frame, shown)]
        head = (
            _rank_line(rank, frame.width, frame.glyphs),
            _waterfall(rank, gone, frame.width, frame.glyphs),
            shown.header,
        )
        if shown.room_of(_WHY):
            return Page(head, tuple(rows))
        return Page(head, tuple(rows), (draw_rule(_WHY, frame.width, frame.glyphs),), _below(_HINT, frame))


def chosen_rank(verdict: Verdict, wanted: RankTarget | None) -> RankVerdict | None:
    """The rank that was chosen, else the first."""
    chosen = (rank for rank in verdict.ranks if wanted == RankTarget(rank.server, rank.rank))
    return next(chosen, verdict.ranks[0] if verdict.ranks else None)


def _node_lines(node: NodeVerdict) -> tuple[Line, ...]:
    return tuple(shown for shown in node.lines if shown.unit == "bytes")


def reason(shown: Line, verdict: Verdict, owner: RankTarget | None) -> str:
    """Why its numbers are what they are: the formula of the plan, else what whoever read it says."""
    # The pools of a node with several servers are the sum of several plans, of which no one is its formula.
    is_sum = owner is None and sum(server.plan is not None for server in verdict.servers) > 1
    why = "" if is_sum or shown.planned is None else formula(shown.line, verdict, owner)
    return plain(why or shown.detail)


def _rows(shown: Line, owner: RankTarget | None, frame: Frame, table: Table, gone: bool = False) -> list[Row]:
    """One line, and more where the reason is longer than its column; where it has none, the reason waits below."""
    missing = frame.glyphs.missing
    cells: list[Cell] = [
        Span(shown.line, "strong" if shown.status in ("over", "under") else "text"),
        Span(value(shown, shown.planned, missing), "muted" if shown.planned is None else "text"),
        seen_cell(shown, missing, gone),
        difference_cell(shown, missing),
        Span(shown.status, status_role(shown)),
        Span(shown.source or missing, "muted"),
    ]
    told, room, target = reason(shown, frame.verdict, owner), table.room_of(_WHY), LineTarget(owner, shown.line)
    if not room:
        return [Row(table.row([*cells, ""]), target, _below(f"{shown.line}: {told or NOTHING_MORE}", frame))]
    first, *others = folded(told, room) or [""]
    blanks: list[Cell] = [""] * len(cells)
    return [
        Row(table.row([*cells, Span(first, "muted")]), target),
        *(Row(table.row([*blanks, Span(piece, "muted")])) for piece in others),
    ]


def _below(text: str, frame: Frame) -> tuple[Row, ...]:
    """Always of the same height, so that nothing moves with the cursor. Enter shows what is longer."""
    pieces = folded(text, max(20, frame.width - 2), max_lines=_BELOW, placeholder=f" {frame.glyphs.more}")
    told = [*pieces, *[""] * (_BELOW - len(pieces))]
    return tuple(Row(fit(line(Span(f" {piece}", "muted")), frame.width, frame.glyphs.more)) for piece in told)


def _title(text: str, frame: Frame) -> Row:
    return Row(fit(line(Span(f" {text}", "accent")), frame.width, frame.glyphs.more))


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
    if not legend and (process := rank.line("hbm.process").seen):
        fill, taken = glyphs.parts[-1], min(left, round(process / total * cells))
        spans.append(Span(fill * taken, "muted"))
        legend = [Span(f" {fill} the process, its parts unknown ", "muted"), f"{process / (1 << 30):.1f}"]
        left -= taken
    spans.append(Span(glyphs.empty * left, "faint"))
    return fit(line(*spans, *legend, Span(f" of {total / (1 << 30):.1f} GiB", "muted")), width, glyphs.more)
