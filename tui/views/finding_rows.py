"""What is wrong, worst first, and sources that should answer and do not."""

from __future__ import annotations

import textwrap

from ranktop.clock import time_of_day_from_iso
from ranktop.finding import SEVERITIES, Finding
from ranktop.reconcile.grouping import rank_span
from ranktop.reconcile.verdict import Verdict
from tui.draw.glyphs import Glyphs
from tui.draw.spans import Span, TextLine, fit, left, line, plain, spread
from tui.draw.spans import width as cells_of
from tui.views.view import NO_DIFFERENCES, Differences, FindingTarget, Row

_CODE_WIDTH = 19
_WHERE_WIDTH = 10
_INDENT = _CODE_WIDTH + 2


def draw_findings_header(verdict: Verdict, width: int, glyphs: Glyphs) -> TextLine:
    """A thin rule that carries the counts on the left and the legend of marked values on the right."""
    counts = [Span(f" {number} {_plural(severity, number)} ", severity) for severity, number in finding_counts(verdict)]
    begin = line(Span(glyphs.rule, "faint"), *(counts or (Span(" no findings ", "muted"),)))
    legend = "' value of the group " if any(shown.group for rank in verdict.ranks for shown in rank.lines) else ""
    end = line(Span(f" {legend}" if legend else "", "muted"), Span(glyphs.rule, "faint"))
    taken = sum(len(span.text) for span in (*begin, *end))
    return fit(line(*begin, Span(glyphs.rule * max(0, width - taken), "faint"), *end), width)


def draw_findings(
    verdict: Verdict, width: int, glyphs: Glyphs, differences: Differences = NO_DIFFERENCES
) -> tuple[Row, ...]:
    """A row a finding: mark and code, which ranks, what, since when; below the worst ones what to do.

    In a replay those that were recorded and are not found again come last, and those that were not recorded say so.
    """
    rows: list[Row] = []
    new = {id(finding) for finding in differences.only_replayed}
    for finding in verdict.findings:
        rows.extend(_finding(finding, width, glyphs, "not recorded" if id(finding) in new else ""))
        if finding.advice and finding.severity != "info" and not finding.causes:
            rows.extend(Row(advice) for advice in _advice(plain(finding.advice), width))
    for finding in differences.only_recorded:
        rows.extend(_finding(finding, width, glyphs, "only recorded"))
    rows.extend(Row(source) for source in _failing_sources(verdict, width, glyphs))
    return tuple(rows)


def _finding(finding: Finding, width: int, glyphs: Glyphs, note: str) -> list[Row]:
    end = line(
        Span(f" {note}" if note else "", "accent"),
        Span(f" {time_of_day_from_iso(finding.since)} " if finding.since else " ", "muted"),
    )
    where = rank_span(finding.ranks) or finding.server or "node"
    begin = line(
        " ",
        Span(glyphs.fold if finding.causes else "", "faint"),
        Span(left(f"{glyphs.marks[finding.severity]} {finding.code}", _CODE_WIDTH, glyphs.more), finding.severity),
        " ",
        Span(left(plain(where), max(_WHERE_WIDTH, len(where)), glyphs.more), "strong"),
        " ",
    )
    room = width - cells_of(end) - 1
    first, *others = _message(plain(finding.message), room - cells_of(begin), width, finding)
    shown = spread(fit(line(*begin, first), room, glyphs.more), end, width)
    return [
        Row(shown, FindingTarget(finding)),
        *(Row(fit(line(" " * _INDENT, piece), width, glyphs.more)) for piece in others),
    ]


def _message(text: str, room: int, width: int, finding: Finding) -> list[str]:
    """What is wrong, whole where it is loud: it comes before what to do about it. A note has one line."""
    if finding.severity == "info" or finding.causes or len(text) <= room:
        return [text]
    first = textwrap.wrap(text, max(12, room))[0]
    return [first, *textwrap.wrap(text[len(first) :].strip(), max(20, width - _INDENT - 1))]


def _advice(text: str, width: int) -> list[TextLine]:
    pieces = textwrap.wrap(text, max(20, width - _INDENT - 1))
    return [fit(line(" " * _INDENT, Span(piece, "muted")), width) for piece in pieces]


def _failing_sources(verdict: Verdict, width: int, glyphs: Glyphs) -> list[TextLine]:
    rows: list[TextLine] = []
    for state in verdict.sample.sources:
        if state.state == "error":
            begin = line(" ", Span(left(f"{glyphs.marks['info']} {state.name}", _CODE_WIDTH, glyphs.more), "warn"), " ")
            rows.append(fit(line(*begin, Span(plain(state.detail), "text")), width, glyphs.more))
    return rows


def finding_counts(verdict: Verdict) -> list[tuple[str, int]]:
    """How many findings of each severity, worst first, without those that do not occur."""
    counts = [
        (severity, sum(1 for finding in verdict.findings if finding.severity == severity))
        for severity in reversed(SEVERITIES)
    ]
    return [(severity, number) for severity, number in counts if number]


def _plural(severity: str, number: int) -> str:
    plural = {"breach": "breaches", "warn": "warnings", "info": "notes", "critical": "critical"}
    single = {"breach": "breach", "warn": "warning", "info": "note", "critical": "critical"}
    return (plural if number > 1 else single)[severity]
