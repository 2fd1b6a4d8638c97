"""Findings that belong to a view, as its first lines."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding
from ranktop.reconcile.headline import where
from ranktop.reconcile.verdict import RankVerdict
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
    told = plain(where(finding, len(frame.verdict.servers)))
    text = line(
        " ",
        Span(f"{frame.glyphs.marks[finding.severity]} {finding.code}", finding.severity),
        Span(f" {told} " if told else " ", "strong"),
        plain(finding.message),
    )
    return Row(fit(text, frame.width, frame.glyphs.more), FindingTarget(finding))


def by_server(frame: Frame) -> Iterator[tuple[tuple[Row, ...], list[RankVerdict]]]:
    """Ranks below a line of their server, where there are several: tags are the same on all of them."""
    servers = frame.verdict.servers
    for server in servers:
        heading = Row(fit(line(Span(f" {plain(server.id)}", "accent")), frame.width, frame.glyphs.more))
        ranks = [rank for rank in frame.verdict.ranks if rank.server == server.id]
        yield ((heading,) if len(servers) > 1 and ranks else (), ranks)
