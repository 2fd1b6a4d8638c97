"""What is wrong, worst first, and sources that should answer and do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len as cells_of_text

from ranktop.clock import time_of_day_from_iso
from ranktop.finding import SEVERITIES, Finding
from ranktop.folding import folded
from ranktop.reconcile.grouping import rank_span
from ranktop.reconcile.headline import where
from ranktop.reconcile.verdict import Verdict
from ranktop.sample import SourceState
from tui.draw.glyphs import Glyphs
from tui.draw.spans import Span, TextLine, fit, left, line, plain, spread
from tui.draw.spans import width as cells_of
from tui.views.view import NO_DIFFERENCES, Differences, FindingTarget, Row

_WIDEST_WHERE = 24
"""Further than this no message is moved by a longer list of ranks in another row."""


class _Places(NamedTuple):
    """Where the columns of a list begin, in cells: as wide as what stands in them."""

    code: int
    where: int

    @property
    def indent(self) -> int:
        """Of the lines below a finding's first."""
        return self.code + 3


def draw_findings_header(verdict: Verdict, width: int, glyphs: Glyphs, legend: str = "") -> TextLine:
    """A thin rule that carries the counts on the left and the legend of marked values above it on the right."""
    counts = [Span(f" {number} {_plural(severity, number)} ", severity) for severity, number in finding_counts(verdict)]
    nothing = "no findings" if verdict.sample.sources else "nothing is judged here"
    begin = line(Span(glyphs.rule, "faint"), *(counts or (Span(f" {nothing} ", "muted"),)))
    end = line(Span(f" {legend} " if legend else "", "muted"), Span(glyphs.rule, "faint"))
    taken = sum(len(span.text) for span in (*begin, *end))
    return fit(line(*begin, Span(glyphs.rule * max(0, width - taken), "faint"), *end), width, glyphs.more)


def draw_findings(
    verdict: Verdict,
    width: int,
    glyphs: Glyphs,
    differences: Differences = NO_DIFFERENCES,
    room: int | None = None,
) -> tuple[Row, ...]:
    """A row a finding: mark and code, which ranks, what, since when; below the worst ones what to do.

    In a replay those that were recorded and are not found again come last, and those that were not recorded say so.
    Where not all fits into `room` rows, notes and effects are cut to a line, then advice gives way, that of the worst
    last, and then the ends of messages: no finding is hidden by the words of another, and Enter shows all of them.
    """
    new = {id(finding) for finding in differences.only_replayed}
    told = [(finding, "not recorded" if id(finding) in new else "") for finding in verdict.findings]
    told += [(finding, "only recorded") for finding in differences.only_recorded]
    wheres = [_where(finding, verdict) for finding, _ in told]
    failing = _failing(verdict.sample.sources)
    places = _Places(
        max(
            [
                *(len(_code(finding, glyphs)) for finding, _ in told),
                *(len(name) + 2 for name, _ in failing),
                17,
            ]
        ),
        min(_WIDEST_WHERE, max(map(cells_of_text, wheres), default=0)),
    )

    def drawn(most_of_first: int | None, most: int | None) -> list[list[Row]]:
        return [
            _finding(
                finding,
                where,
                places,
                width,
                glyphs,
                note,
                brief if _is_brief(finding) else most if number else most_of_first,
            )
            for number, ((finding, note), where) in enumerate(zip(told, wheres, strict=True))
        ]

    brief = None if room is None else 1
    sources = [_source(name, detail, places, width, glyphs) for name, detail in failing]
    findings, spare = drawn(None, None), None
    if room is not None:
        spare = room - sum(map(len, findings)) - len(sources)
        if spare < 0:
            findings = drawn(max(2, room - len(told) + 1 - len(sources)), 1)
            spare = max(0, room - sum(map(len, findings)) - len(sources))
    rows: list[Row] = []
    for (finding, note), lines in zip(told, findings, strict=True):
        rows += lines
        if _is_advised(finding, note):
            advice = _advice(plain(finding.advice), places, width, glyphs, spare)
            rows += [Row(text_line) for text_line in advice]
            spare = None if spare is None else spare - len(advice)
    return (*rows, *(Row(source) for source in sources))


def _is_brief(finding: Finding) -> bool:
    """A note, or what follows from another finding."""
    return finding.severity == "info" or bool(finding.causes)


def _is_advised(finding: Finding, note: str) -> bool:
    return bool(finding.advice) and not _is_brief(finding) and note != "only recorded"


def _where(finding: Finding, verdict: Verdict) -> str:
    """Its ranks, with their server where there are several; a server alone, or the node."""
    ranks, server = rank_span(finding.ranks), finding.server
    if server is None or not verdict.servers:
        return plain(ranks or server or "node")
    if len(verdict.servers) == 1:
        return plain(ranks or "server")
    return plain(where(finding, len(verdict.servers)))


def _code(finding: Finding, glyphs: Glyphs) -> str:
    return f"{glyphs.fold if finding.causes else ''}{glyphs.marks[finding.severity]} {plain(finding.code)}"


def _finding(
    finding: Finding, where: str, places: _Places, width: int, glyphs: Glyphs, note: str, most: int | None
) -> list[Row]:
    end = line(
        Span(f" {note}" if note else "", "accent"),
        Span(f" {time_of_day_from_iso(finding.since)} " if finding.since else " ", "muted"),
    )
    begin = line(
        " ",
        Span(left(_code(finding, glyphs), places.code, glyphs.more), finding.severity),
        "  ",
        Span(left(where, max(places.where, cells_of_text(where)), glyphs.more), "strong"),
        "  ",
    )
    room = width - cells_of(end) - 1
    below = width - places.indent - 1
    first, *others = _message(plain(finding.message), room - cells_of(begin), below, glyphs, most)
    shown = spread(fit(line(*begin, first), room, glyphs.more), end, width, glyphs.more)
    return [
        Row(shown, FindingTarget(finding)),
        *(Row(fit(line(" " * places.indent, piece), width, glyphs.more)) for piece in others),
    ]


def _message(text: str, room: int, below: int, glyphs: Glyphs, most: int | None) -> list[str]:
    """What is wrong, in `most` lines, whole where it is None: it comes before what to do about it."""
    if most == 1 or len(text) <= room:
        return [text]
    first = folded(text, max(12, room))[0]
    return _at_most([first, *folded(text[len(first) :].strip(), max(20, below))], most, below, glyphs)


def _at_most(pieces: list[str], most: int | None, width: int, glyphs: Glyphs) -> list[str]:
    """The first ones; the last says that there are more."""
    if most is None or len(pieces) <= most:
        return pieces
    kept = pieces[: max(0, most)]
    return [*kept[:-1], *(_going_on(piece, width, glyphs.more) for piece in kept[-1:])]


def _going_on(piece: str, width: int, more: str) -> str:
    """As many whole words as leave room for the sign that there are more."""
    words = folded(piece, max(1, width - len(more) - 1))
    return f"{words[0]} {more}" if words else more


def _advice(text: str, places: _Places, width: int, glyphs: Glyphs, most: int | None) -> list[TextLine]:
    """In `most` lines."""
    below = max(20, width - places.indent - 1)
    pieces = _at_most(folded(text, below), most, below, glyphs)
    return [fit(line(" " * places.indent, Span(piece, "muted")), width, glyphs.more) for piece in pieces]


def _failing(sources: Sequence[SourceState]) -> list[tuple[str, str]]:
    """Name and detail of what should answer and does not. What fails alike on one server is one row: a server that
    refuses one page refuses all of them, and advice needs the room."""
    alike: dict[tuple[str, ...], list[SourceState]] = {}
    for state in sources:
        if state.state == "error":
            is_alike = state.server is not None and state.code
            alike.setdefault((state.server or "", state.code, "" if is_alike else state.name), []).append(state)
    return [
        (plain(first.name) + (f" +{len(others)}" if others else ""), plain(first.detail))
        for first, *others in alike.values()
    ]


def _source(name: str, detail: str, places: _Places, width: int, glyphs: Glyphs) -> TextLine:
    told = left(f"{glyphs.marks['info']} {name}", places.code, glyphs.more)
    return fit(line(" ", Span(told, "warn"), "  ", Span(detail, "text")), width, glyphs.more)


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
