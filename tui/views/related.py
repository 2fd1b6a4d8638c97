"""Findings that belong to a view, as its first lines."""

from __future__ import annotations

from ranktop.finding import Finding
from ranktop.reconcile.grouping import rank_span
from tui.draw.spans import Span, fit, line, plain
from tui.views.view import FindingTarget, Frame, Row


def related(frame: Frame, *prefixes: str) -> tuple[Row, ...]:
    """The findings whose code begins so, each a row that Enter opens; or one quiet line."""
    found = [finding for finding in frame.verdict.findings if finding.code.startswith(prefixes)]
    if not found:
        mark = frame.glyphs.marks["ok"]
        return (Row(fit(line(Span(f" {mark} no finding about this", "muted")), frame.width, frame.glyphs.more)),)
    return tuple(finding_row(finding, frame) for finding in found)


def finding_row(finding: Finding, frame: Frame) -> Row:
    """One line: mark, code, ranks and message."""
    where = rank_span(finding.ranks)
    text = line(
        " ",
        Span(f"{frame.glyphs.marks[finding.severity]} {finding.code}", finding.severity),
        Span(f" {where} " if where else " ", "strong"),
        plain(finding.message),
    )
    return Row(fit(text, frame.width, frame.glyphs.more), FindingTarget(finding))
