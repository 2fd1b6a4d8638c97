"""`check --markdown`: for an incident channel or a ticket."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ranktop.cli.check_text import state_of, tiers_text, where_text
from ranktop.clock import iso_utc
from ranktop.finding import Finding
from ranktop.printable import printable
from ranktop.reconcile.verdict import ServerVerdict, Verdict

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#])")


def check_markdown(verdict: Verdict) -> str:
    """Findings first, then servers and the node; GitHub's flavour of tables."""
    return printable("\n".join(_lines(verdict)) + "\n")


def _lines(verdict: Verdict) -> Iterator[str]:
    sample = verdict.sample
    yield f"**{_text(verdict.headline)}**"
    yield ""
    yield f"`{_code(sample.host_name or 'node')}` at {iso_utc(sample.at_unix_seconds)}, by `ranktop check`"
    yield ""
    if verdict.findings:
        yield from _table(
            ("severity", "code", "where", "since", "what"),
            [_finding(finding, len(verdict.servers)) for finding in verdict.findings],
        )
        yield ""
        advice = dict.fromkeys((finding.code, finding.advice) for finding in verdict.findings if finding.advice)
        yield from (f"- `{code}`: {_text(text)}" for code, text in advice)
    else:
        yield "No findings."
    yield ""
    yield from _table(
        ("server", "model", "sglang", "role", "ready", "ranks"), [_server(one, verdict) for one in verdict.servers]
    )
    available, total = verdict.node.line("host.available"), verdict.node.line("host.total")
    if available.seen is not None and total.seen is not None:
        yield ""
        yield f"Host: {available.seen / 1e9:.2f} GB available of {total.seen / 1e9:.2f} GB"
    if verdict.tiers.window_tokens:
        yield ""
        yield f"Tiers: {tiers_text(verdict.tiers)}"
    failing = [state for state in sample.sources if state.state in ("error", "stale")]
    if failing:
        yield ""
        yield "Not seen:"
        yield ""
        yield from (f"- {_text(state.name)}: {_text(state.detail)}" for state in failing)


def _finding(finding: Finding, servers: int) -> tuple[str, ...]:
    mark = "↳ " if finding.causes else ""
    return (
        f"{mark}{finding.severity}",
        f"`{finding.code}`",
        _text(where_text(finding, servers)),
        finding.since or "",
        _text(finding.message),
    )


def _server(server: ServerVerdict, verdict: Verdict) -> tuple[str, ...]:
    states = [state_of(rank, verdict) for rank in verdict.ranks if rank.server == server.id]
    counted = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    ready = {True: "yes", False: "no", None: "unknown"}[server.is_ready]
    return (
        f"`{_code(server.id)}`",
        _text(server.model or ""),
        _text(server.version or ""),
        server.role or "",
        ready,
        counted,
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _text(text: str) -> str:
    """What a server or a log says cannot make a link, a table cell or a line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    return " ".join(text.split()).replace("`", "'").replace("|", "\\|")
