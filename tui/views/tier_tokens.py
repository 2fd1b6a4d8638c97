"""Of the Tiers view: tokens a second between the tiers, where evicted tokens went, and reads from storage."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.clock import time_of_day
from ranktop.finding import Finding
from ranktop.reconcile.verdict import ServerVerdict
from tui.draw import numbers
from tui.draw.spans import Span, TextLine, fit, line, plain
from tui.draw.table import Cell, Col, table
from tui.views.view import Frame

_READ_COLUMNS = (
    Col("read", 8, align_left=True),
    Col("request", 10, align_left=True),
    Col("requested", 10),
    Col("completed", 10),
    Col("loaded", 10),
    Col("occupied", 10, weight=1),
    Col("ranks", 5, weight=2),
    Col("outcome", 9, align_left=True, grow=True),
)


def ledger_lines(frame: Frame) -> list[TextLine]:
    """The two sums that a finding L2-WHY was read from; nothing without one."""
    found = (finding for finding in frame.verdict.findings if finding.code == "L2-WHY")
    return [fit(text_line, frame.width, frame.glyphs.more) for each in found for text_line in _ledger(each, frame)]


def _ledger(finding: Finding, frame: Frame) -> tuple[TextLine, ...]:
    def tokens(name: str) -> str:
        value = finding.evidence.get(f"{name}_tokens")
        return frame.glyphs.missing if value is None else f"{value:,.0f}"

    def total(title: str, whole: str, *parts: str) -> TextLine:
        spans: list[Span | str] = [Span(title, "muted"), f"{whole} {tokens(whole)} "]
        for number, part in enumerate(parts):
            spans.append(f"{'+' if number else '='} {part} {tokens(part)} ")
        return line(*spans)

    return (total(" tokens ", "evicted", "written", "dropped", "lost"), total("        ", "hit", "read", "phantom"))


def traffic_lines(frame: Frame) -> list[TextLine]:
    """A small table a server: logical tokens a second, and the bandwidth of a rank's copies while they run."""
    lines: list[TextLine] = []
    for server in frame.verdict.servers:
        columns = (
            Col(plain(server.id), 32, align_left=True),
            Col("tokens/s", 12),
            Col("copying at", 12),
            Col("", 0, align_left=True, grow=True),
        )
        header, body = table(columns, list(_traffic(server, frame)), frame.width, frame.glyphs.more)
        lines += [header, *body]
    return lines


def _traffic(server: ServerVerdict, frame: Frame) -> Iterator[list[Cell]]:
    told, missing = server.traffic, frame.glyphs.missing
    no_l3 = "no L3 backend" if server.plan is not None and server.plan.launch.storage_backend is None else ""

    def row(name: str, tokens: float | None, copying: str = "", why: str = "") -> list[Cell]:
        return [
            Span(name, "muted"),
            missing if tokens is None else f"{tokens:,.0f}",
            copying,
            Span(why if tokens is None else "", "muted"),
        ]

    backup, load_back = told.backup_copy_bytes_per_second, told.load_back_copy_bytes_per_second
    yield row("L1>L2 backup", told.backup_tokens_per_second, numbers.rate(backup, missing))
    yield row("L2>L1 load-back", told.load_back_tokens_per_second, numbers.rate(load_back, missing))
    yield row("evicted from L1", told.evicted_tokens_per_second)
    for name, tokens in sorted(told.dropped_tokens_per_second.items()):
        yield row(f"dropped: {plain(name)}", tokens)
    yield row("L3>L2 prefetched", told.prefetched_tokens_per_second, why=no_l3)
    yield row("L2>L3 written", told.storage_backup_tokens_per_second, why=no_l3)


def read_lines(frame: Frame) -> list[TextLine]:
    """The newest reads from storage of every server that logs any, in tokens."""
    lines: list[TextLine] = []
    for server in frame.verdict.servers:
        if server.prefetches:
            header, body = table(_READ_COLUMNS, _reads(server, frame), frame.width, frame.glyphs.more)
            lines += [line(" " * frame.width), header, *body]
    return lines


def _reads(server: ServerVerdict, frame: Frame) -> list[list[Cell]]:
    def tokens(value: int | None) -> str:
        return frame.glyphs.missing if value is None else f"{value:,}"

    return [
        [
            Span(time_of_day(read.at_unix_seconds), "muted"),
            plain(read.request),
            tokens(read.requested_tokens),
            tokens(read.completed_tokens),
            tokens(read.loaded_tokens),
            tokens(read.occupied_tokens),
            str(read.ranks),
            plain(read.outcome),
        ]
        for read in server.prefetches
    ]
