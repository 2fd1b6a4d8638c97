"""The rank grid: a header, then per server its ranks, in rank order or as sorted and filtered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ranktop.finding import SEVERITIES
from ranktop.folding import folded
from ranktop.reconcile.gone import gone_ranks
from ranktop.reconcile.verdict import RankVerdict, ServerVerdict, Verdict
from ranktop.reconcile.wording import counted
from tui.draw.glyphs import Glyphs
from tui.draw.spans import Span, TextLine, fit, line, plain
from tui.views.columns import Look, fitting, header, legend, rank_columns, row, scales, tag_width, unseen_order
from tui.views.sorting import arranged
from tui.views.view import UNSORTED, RankTarget, Row, Sort
from tui.views.wanted_columns import chosen


class Grid(NamedTuple):
    """Header and rows apart: the header stays while the rows scroll. `order` says what it cannot, else is empty."""

    header: TextLine
    rows: tuple[Row, ...]
    order: str = ""
    legend: str = ""
    """What the marks mean that stand behind and before its values."""


def draw_grid(
    verdict: Verdict,
    width: int,
    glyphs: Glyphs,
    sort: Sort = UNSORTED,
    keep: str = "",
    wanted: Sequence[str] = (),
    *,
    margin: int = 0,
) -> Grid:
    """All ranks of the node. With several servers each has a line of its own above its ranks.

    `keep` filters: a rank stays when its tag, server, state or finding contains the text. `wanted` are columns
    as the configuration has them. `margin` is of the `width` cells, blank at both ends.
    """
    width -= 2 * margin
    look = Look(glyphs, scales(verdict.ranks), _states(verdict, glyphs), gone_ranks(verdict))
    every = rank_columns(tag_width(rank.rank for rank in verdict.ranks))
    columns = fitting(chosen(every, wanted), width)
    rows: list[Row] = []
    shown: list[RankVerdict] = []
    several = len(verdict.servers) > 1
    for server in verdict.servers:
        ranks = [rank for rank in verdict.ranks if rank.server == server.id and _keeps(rank, look, keep)]
        shown += ranks
        if several and ranks:
            rows.append(Row(_between(margin, fit(_server_line(server), width, glyphs.more))))
        rows.extend(
            Row(partial(row, rank, columns, look, width, margin), RankTarget(rank.server, rank.rank))
            for rank in arranged(ranks, sort, partial(_badness, look))
        )
    if not rows:
        why = folded(_why_empty(verdict), max(20, width))
        rows += [Row(_between(margin, fit(line(Span(piece, "muted")), width, glyphs.more))) for piece in why]
    titles = fit(header(columns, look, sort), width, glyphs.more)
    return Grid(
        _between(margin, titles), tuple(rows), unseen_order(every, columns, look, sort), legend(shown, columns, look)
    )


def _why_empty(verdict: Verdict) -> str:
    if verdict.ranks:
        return "no rank matches the filter"
    # A node that is only known through Prometheus says in its sentence why nothing is seen.
    if verdict.servers or not verdict.sample.sources:
        return "no rank is seen"
    if verdict.sample.processes is not None and verdict.sample.processes.only_pids:
        return (
            "no rank is seen: only the process given with --pid is looked for; quit and give the main process of a "
            "server (`pgrep -f sglang`), or leave --pid out and every server of this node is shown"
        )
    return (
        "no rank is seen: start a server and it appears here, or name one with --url or --pid; `ranktop doctor` says "
        "what can be seen on this node, and `ranktop demo` shows what there would be to see"
    )


def _between(margin: int, text_line: TextLine) -> TextLine:
    return line(" " * margin, *text_line, " " * margin)


def _server_line(server: ServerVerdict) -> TextLine:
    about = (plain(server.model or "model unknown"), server.role or "", counted(server.ranks, "rank"))
    return line(Span(server.id, "accent"), Span("  " + "  ".join(part for part in about if part), "muted"))


def _states(verdict: Verdict, glyphs: Glyphs) -> dict[tuple[str, str], tuple[str, str]]:
    """The worst finding of each rank, above info; else how its process stands."""
    states = {(rank.server, rank.rank): _process_state(rank) for rank in verdict.ranks}
    loud = [finding for finding in verdict.findings if finding.severity != "info"]
    # The worst is written last; among equals the first in the list, as roots stand before their effects.
    for finding in sorted(loud, key=lambda finding: -SEVERITIES.index(finding.severity))[::-1]:
        for rank in finding.ranks:
            if finding.server is not None and (finding.server, rank) in states:
                mark = glyphs.marks[finding.severity]
                states[(finding.server, rank)] = (f"{mark} {finding.code}", finding.severity)
    return states


def _badness(look: Look, rank: RankVerdict) -> float:
    """By the colour of its state: 0 where that says nothing bad."""
    role = look.states[rank.server, rank.rank][1]
    return float((None, *SEVERITIES).index(role)) if role in SEVERITIES else 0.0


def _keeps(rank: RankVerdict, look: Look, keep: str) -> bool:
    if not keep:
        return True
    word, _ = look.states[rank.server, rank.rank]
    return keep.casefold() in f"{rank.rank} {rank.server} {word}".casefold()


_STATES = {
    "D": ("in kernel (D)", "text"),
    "T": ("stopped (T)", "warn"),
    "Z": ("zombie (Z)", "critical"),
}


def _process_state(rank: RankVerdict) -> tuple[str, str]:
    if rank.pid is None:
        return "no process", "muted"
    return _STATES.get(rank.state or "", ("ok", "muted"))
