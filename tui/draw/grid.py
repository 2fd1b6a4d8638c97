"""The rank grid as lines: a header, then per server its ranks in rank order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ranktop.finding import SEVERITIES
from ranktop.reconcile.verdict import RankVerdict, ServerVerdict, Verdict
from tui.draw.columns import Look, fitting, header, rank_columns, row, scales
from tui.draw.glyphs import Glyphs
from tui.draw.spans import Span, TextLine, fit, line, plain

_LONGEST_TAG = 27
"""`DP15 PP0 ATTN_CP3 TP15 EP15` fits; nothing that SGLang prints is longer today."""


class Grid(NamedTuple):
    """Header and rows apart: the header stays while the rows scroll."""

    header: TextLine
    rows: tuple[TextLine, ...]


def draw_grid(verdict: Verdict, width: int, glyphs: Glyphs) -> Grid:
    """All ranks of the node. With several servers each has a line of its own above its ranks."""
    look = Look(glyphs, scales(verdict.ranks), _states(verdict, glyphs))
    longest = max((len(rank.rank) for rank in verdict.ranks), default=4)
    columns = fitting(rank_columns(min(_LONGEST_TAG, max(4, longest))), width)
    rows: list[TextLine] = []
    several = len(verdict.servers) > 1
    for server in verdict.servers:
        if several:
            rows.append(fit(_server_line(server), width, glyphs.more))
        rows.extend(row(rank, columns, look, width) for rank in verdict.ranks if rank.server == server.id)
    return Grid(header(columns, look), tuple(rows))


def _server_line(server: ServerVerdict) -> TextLine:
    about = (plain(server.model or "model unknown"), server.role or "", f"{server.ranks} ranks")
    return line(Span(server.id, "accent"), Span("  " + "  ".join(part for part in about if part), "muted"))


def _states(verdict: Verdict, glyphs: Glyphs) -> dict[tuple[str, str], tuple[str, str]]:
    """The worst finding of each rank, above info; else how its process stands."""
    states = {(rank.server, rank.rank): _process_state(rank) for rank in verdict.ranks}
    loud = [finding for finding in verdict.findings if finding.severity != "info"]
    for finding in sorted(loud, key=lambda finding: SEVERITIES.index(finding.severity)):
        for rank in finding.ranks:
            if finding.server is not None and (finding.server, rank) in states:
                mark = glyphs.marks[finding.severity]
                states[(finding.server, rank)] = (f"{mark} {finding.code}", finding.severity)
    return states


_STATES = {
    "D": ("in kernel (D)", "text"),
    "T": ("stopped (T)", "warn"),
    "Z": ("zombie (Z)", "critical"),
}


def _process_state(rank: RankVerdict) -> tuple[str, str]:
    if rank.pid is None:
        return "no process", "muted"
    return _STATES.get(rank.state or "", ("ok", "muted"))


def finding_counts(verdict: Verdict) -> Sequence[tuple[str, int]]:
    """How many findings of each severity, worst first, without those that do not occur."""
    counts = [
        (severity, sum(1 for finding in verdict.findings if finding.severity == severity))
        for severity in reversed(SEVERITIES)
    ]
    return [(severity, number) for severity, number in counts if number]
