"""`check` for a person: the sentence, the ranks, the findings, the sources that fail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ranktop.clock import time_of_day_from_iso
from ranktop.finding import Finding, worst
from ranktop.folding import folded
from ranktop.printable import printable
from ranktop.reconcile.gone import gone_ranks
from ranktop.reconcile.grouping import rank_span
from ranktop.reconcile.verdict import Line, RankVerdict, ServerVerdict, TierShares, Verdict

_WIDTH = 80
_HEAD = ("rank", "pid", "gpu", "primary/plan GB", "indexer/plan GB", "HBM/total GiB", "state")
_UNIT = re.compile(r"(\d) (?=%|[GMT]i?B\b|s\b|tokens\b)")
_WORDS = (0, len(_HEAD) - 1)
"""Columns of words; numbers end at the right of theirs."""
_SPARE = (2, 1, 5)
"""What goes first where a line would be too long: GPU, pid, HBM."""
_MOST_CHARACTERS = 2000
"""Of one message: what comes from outside can be of any length."""


def check_text(verdict: Verdict) -> str:
    """Plain text for 80 columns; every number with its unit."""
    return printable("\n".join(_lines(verdict)))


def _lines(verdict: Verdict) -> Iterator[str]:
    yield _hanging(verdict.headline, "", "")
    for server in verdict.servers:
        yield ""
        yield from _server(server, verdict)
    facts = list(_node(verdict))
    if facts:
        yield ""
        yield from facts
    if verdict.findings:
        yield ""
    nexts = [*verdict.findings[1:], None]
    for finding, after in zip(verdict.findings, nexts, strict=False):
        is_repeated = after is not None and (after.code, after.advice) == (finding.code, finding.advice)
        yield from _finding(finding, len(verdict.servers), with_advice=not is_repeated)
    failing = [state for state in verdict.sample.sources if state.state in ("error", "stale")]
    if failing:
        yield ""
    for state in failing:
        yield _hanging(f"source {state.name}: {state.detail}", "", "  ")


def _server(server: ServerVerdict, verdict: Verdict) -> Iterator[str]:
    words = (
        server.id,
        f"pid {server.pid}" if server.pid is not None else None,
        server.model,
        f"sglang {server.version}" if server.version else None,
        server.role,
        "not ready" if server.is_ready is False else None,
    )
    yield _hanging("  ".join(word for word in words if word), "", "  ")
    if server.plan_error and server.plan is None:
        yield _hanging(f"no plan: {server.plan_error}", "  ", "    ")
    own = [rank for rank in verdict.ranks if rank.server == server.id]
    if own:
        gone = gone_ranks(verdict)
        yield from _table([_HEAD, *(_row(rank, verdict, (rank.server, rank.rank) in gone) for rank in own)])


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Columns as wide as they need to be, without those that no rank fills, and those that long tags leave no room."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    columns = [
        column for column in range(len(_HEAD)) if column in _WORDS or any(row[column] != "-" for row in rows[1:])
    ]
    for spare in _SPARE:
        if spare in columns and sum(widths[column] + 2 for column in columns) > _WIDTH:
            columns.remove(spare)
    for row in rows:
        cells = [
            row[column].ljust(widths[column]) if column in _WORDS else row[column].rjust(widths[column])
            for column in columns
        ]
        yield ("  " + "  ".join(cells)).rstrip()


def _row(rank: RankVerdict, verdict: Verdict, is_gone: bool) -> tuple[str, ...]:
    process, total = rank.line("hbm.process"), rank.line("hbm.total")
    return (
        rank.rank,
        "-" if rank.pid is None else str(rank.pid),
        "-" if rank.gpu is None else str(rank.gpu),
        _pair(rank.line("host.primary"), is_gone),
        _pair(rank.line("host.indexer"), is_gone),
        _of(process.seen, total.seen, 2**30, 1),
        state_of(rank, verdict),
    )


def state_of(rank: RankVerdict, verdict: Verdict) -> str:
    """The worst severity of the rank's own findings, else how it is known."""
    severity = worst([one for one in verdict.findings if one.server == rank.server and rank.rank in one.ranks])
    if severity is not None:
        return severity
    if rank.pid is not None:
        return "ok"
    if any(line.source == "logged" for line in rank.lines):
        return "as logged"
    return "no process" if verdict.sample.processes is not None else "-"


def _node(verdict: Verdict) -> Iterator[str]:
    available, total = verdict.node.line("host.available"), verdict.node.line("host.total")
    if available.seen is not None and total.seen is not None:
        note = " (simulated)" if available.source == "simulated" else ""
        yield f"host: {available.seen / 1e9:.2f} GB available of {total.seen / 1e9:.2f} GB{note}"
    if verdict.tiers.window_tokens:
        yield f"tiers: {tiers_text(verdict.tiers)}"


def _finding(finding: Finding, servers: int, *, with_advice: bool) -> Iterator[str]:
    """An effect stands under its root, moved in; the same advice for a row of findings under the last of them."""
    indent = "  " if finding.causes else ""
    since = f" (since {time_of_day_from_iso(finding.since)})" if finding.since else ""
    where = where_text(finding, servers)
    text = f"{finding.severity:<8} {finding.code}  {where}: {finding.message}{since}"
    yield _hanging(text, indent, f"{indent}         ")
    if finding.advice and with_advice:
        yield _hanging(finding.advice, f"{indent}         > ", f"{indent}           ")


def where_text(finding: Finding, servers: int) -> str:
    """Ranks, server or node; with the server's name where there are several."""
    span = rank_span(finding.ranks)
    if span:
        return f"{span} of {finding.server}" if servers > 1 and finding.server else span
    return finding.server or "node"


def tiers_text(tiers: TierShares) -> str:
    """`L1 61.2 %, L2 24.0 %, ... of 812,344 prefill tokens`."""
    shares = (("L1", tiers.device_hit), ("L2", tiers.host_hit), ("L3", tiers.storage_hit), ("miss", tiers.miss))
    said = [f"{name} {100 * share:.1f} %" for name, share in shares if share is not None]
    return f"{', '.join(said)} of {tiers.window_tokens:,} prefill tokens"


def _pair(line: Line, is_gone: bool) -> str:
    """Of a rank that is gone the log still tells the pools; they are not there."""
    return _of(None if is_gone else line.seen, line.planned, 1e9, 2)


def _of(first: float | None, second: float | None, divisor: float, digits: int) -> str:
    """`seen/planned`; small pools of test machines keep three digits that count."""
    if first is None and second is None:
        return "-"
    largest = max(first or 0, second or 0) / divisor
    digits = digits if largest >= 1 or largest == 0 else 4
    return "/".join("-" if value is None else f"{value / divisor:.{digits}f}" for value in (first, second))


def _hanging(text: str, first: str, rest: str) -> str:
    """Folded lines; a number stays with its unit."""
    joined = _UNIT.sub("\\1\u00a0", text[:_MOST_CHARACTERS])
    pieces = folded(joined, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False)
    return "\n".join(pieces).replace("\u00a0", " ")
