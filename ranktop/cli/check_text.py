"""`check` for a person: the sentence, the ranks, the findings, the sources that fail."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.reconcile.grouping import rank_span
from ranktop.reconcile.verdict import Line, RankVerdict, Verdict

_ROW = "  {rank:<14} {pid:>8} {gpu:>4} {primary:>19} {indexer:>19} {hbm:>13}  {worst}"


def check_text(verdict: Verdict) -> str:
    """Plain text for 80 columns and more; every number with its unit."""
    return "\n".join(_lines(verdict))


def _lines(verdict: Verdict) -> Iterator[str]:
    yield verdict.headline
    for server in verdict.servers:
        words = (server.model, f"sglang {server.version}" if server.version else None, server.role)
        yield ""
        pid = f"  pid {server.pid}" if server.pid is not None else ""
        yield f"{server.id}{pid}  {'  '.join(word for word in words if word)}"
        if server.plan_error and server.plan is None:
            yield f"  no plan: {server.plan_error}"
        yield _ROW.format(
            rank="rank",
            pid="pid",
            gpu="gpu",
            primary="primary seen/plan",
            indexer="indexer seen/plan",
            hbm="HBM GiB",
            worst="state",
        )
        for rank in verdict.ranks:
            if rank.server == server.id:
                yield _rank(rank, verdict)
    available, total = verdict.node.line("host.available"), verdict.node.line("host.total")
    if available.seen is not None and total.seen is not None:
        note = " (simulated)" if available.source == "simulated" else ""
        yield ""
        yield f"host: {available.seen / 1e9:.2f} GB available of {total.seen / 1e9:.2f} GB{note}"
    if verdict.tiers.window_tokens:
        yield "tiers: " + _tiers(verdict)
    if verdict.findings:
        yield ""
    for finding in verdict.findings:
        where = rank_span(finding.ranks) or finding.server or "node"
        yield f"{finding.severity:<8} {finding.code}  {where}: {finding.message}"
        if finding.advice:
            yield f"         {finding.advice}"
    failing = [state for state in verdict.sample.sources if state.state in ("error", "stale")]
    if failing:
        yield ""
    for state in failing:
        yield f"source {state.name}: {state.detail}"


def _rank(rank: RankVerdict, verdict: Verdict) -> str:
    codes = [
        finding.code for finding in verdict.findings if finding.server == rank.server and rank.rank in finding.ranks
    ]
    process, total = rank.line("hbm.process"), rank.line("hbm.total")
    hbm = "-" if process.seen is None else f"{process.seen / 2**30:.1f}"
    of = "-" if total.seen is None else f"{total.seen / 2**30:.1f}"
    return _ROW.format(
        rank=rank.rank,
        pid="-" if rank.pid is None else rank.pid,
        gpu="-" if rank.gpu is None else rank.gpu,
        primary=_pair(rank.line("host.primary")),
        indexer=_pair(rank.line("host.indexer")),
        hbm=f"{hbm}/{of}",
        worst=codes[0] if codes else _state(rank, verdict),
    )


def _state(rank: RankVerdict, verdict: Verdict) -> str:
    if rank.pid is not None:
        return "ok"
    if any(line.source == "logged" for line in rank.lines):
        return "as logged"
    return "no process" if verdict.sample.processes is not None else "-"


def _pair(line: Line) -> str:
    largest = max(line.planned or 0, line.seen or 0)
    divisor, unit = (1e9, "GB") if largest >= 1e9 else (1e6, "MB")
    seen = "-" if line.seen is None else f"{line.seen / divisor:.2f}"
    planned = "-" if line.planned is None else f"{line.planned / divisor:.2f}"
    return f"{seen}/{planned} {unit}"


def _tiers(verdict: Verdict) -> str:
    tiers = verdict.tiers
    shares = (("L1", tiers.device_hit), ("L2", tiers.host_hit), ("L3", tiers.storage_hit), ("miss", tiers.miss))
    said = [f"{name} {100 * share:.1f} %" for name, share in shares if share is not None]
    return f"{', '.join(said)} of {tiers.window_tokens} prefill tokens"
