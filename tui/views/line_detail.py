"""Enter on a line of Budget: its numbers in full, where they come from, and why they are what they are."""

from __future__ import annotations

from ranktop.reconcile.verdict import Line, Verdict
from tui.draw.spans import Span, TextLine, fit, line, paragraph, plain
from tui.views.budget import NOTHING_MORE, reason
from tui.views.values import status_role, value
from tui.views.view import Frame, LineTarget, Page, RankTarget, Row


class LineDetail:
    """Follows the line; what is no longer told is said to be so."""

    key = ""
    name = "line"

    def __init__(self, target: LineTarget) -> None:
        self._target = target

    def draw(self, frame: Frame) -> Page:
        target, owner, width = self._target, self._target.owner, frame.width
        shown = _find(frame.verdict, target)
        head = line(
            Span(f" {plain(target.line)}", status_role(shown), True),
            Span("   this node" if owner is None else f"   {owner.rank}   {plain(owner.server)}", "muted"),
        )
        lines = [head, line(" "), *_numbers(shown, frame), line(" ")]
        told = [each for each in (reason(shown, frame.verdict, owner), plain(shown.detail)) if each]
        for each in dict.fromkeys(told or [NOTHING_MORE]):
            lines += paragraph(each, width)
        return Page((), tuple(Row(fit(each, width, frame.glyphs.more)) for each in lines))


def _find(verdict: Verdict, target: LineTarget) -> Line:
    if target.owner is None:
        return verdict.node.line(target.line)
    ranks = (rank for rank in verdict.ranks if target.owner == RankTarget(rank.server, rank.rank))
    rank = next(ranks, None)
    return Line(target.line, detail="this rank is gone") if rank is None else rank.line(target.line)


def _numbers(shown: Line, frame: Frame) -> list[TextLine]:
    missing = frame.glyphs.missing
    amounts = (
        ("planned", shown.planned, ""),
        ("seen", shown.seen, shown.source or ""),
        ("difference", shown.difference, ""),
    )
    rows = [
        line(
            Span(f" {name:<12}", "muted"),
            f"{value(shown, amount, missing):>12}",
            Span(f"   {_exact(shown, amount):>22}   {source}", "muted"),
        )
        for name, amount, source in amounts
    ]
    return [*rows, line(Span(f" {'status':<12}", "muted"), Span(f"{shown.status:>12}", status_role(shown)))]


def _exact(shown: Line, amount: float | None) -> str:
    return f"{amount:,} {shown.unit}" if isinstance(amount, int) and shown.unit == "bytes" else ""
