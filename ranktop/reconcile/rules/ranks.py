"""Ranks that went away or came back: RANK-DEAD, RANK-RESTARTED."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding, Severity
from ranktop.reconcile.lives import GoneRank
from ranktop.reconcile.rules.rank_death import death_of, why_ended
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.verdict import RankVerdict

_LOST = "the L1 and L2 content of this rank is lost"
_RESTART = (
    "read the end of the server's log and the kernel log for a kill; the group cannot serve without this rank, so "
    "drain the node and restart the server"
)


def rank_dead(context: Context) -> Iterator[Finding]:
    """A rank that was seen is gone or a zombie; or a ready server lacks a rank that its plan has."""
    reported: set[tuple[str, str]] = set()
    for gone in context.gone:
        tag = str(gone.process.tag)
        reported.add((gone.process.server, tag))
        severity, message = _judge_gone(context, gone)
        if severity is None:
            continue
        yield Finding(
            "RANK-DEAD",
            severity,
            message,
            scope="rank",
            server=gone.process.server,
            rank=tag,
            evidence={"pid": gone.process.pid, "start_ticks": gone.process.start_ticks},
            sources={"pid": "measured", "start_ticks": "measured"},
            advice=_LOST if severity == "info" else _RESTART,
        )
    for rank in context.ranks:
        if rank.state in ("Z", "X") and (rank.server, rank.rank) not in reported:
            reported.add((rank.server, rank.rank))
            yield _zombie(context, rank)
    yield from _absent(context, reported)


def rank_restarted(context: Context) -> Iterator[Finding]:
    """A rank is another process than before. With its whole server started again that is a launch, not an alarm."""
    now = context.sample.at_unix_seconds
    for returned in context.returned:
        if now - returned.at_unix_seconds > context.thresholds.restart_seconds:
            continue
        before, after = returned.before, returned.after
        death = why_ended(context, before.server, str(before.tag), before.pid, returned.at_unix_seconds)
        is_calm = returned.server_too and death.orderly is not False
        reason = f", {death.reason}" if death.reason else ""
        yield Finding(
            "RANK-RESTARTED",
            "info" if is_calm else "warn",
            f"pid {before.pid} is now {after.pid}"
            + (", the whole server was started again" if returned.server_too else " under the same main process")
            + reason,
            scope="rank",
            server=after.server,
            rank=str(after.tag),
            evidence={
                "pid_before": before.pid,
                "pid": after.pid,
                "start_ticks_before": before.start_ticks,
                "start_ticks": after.start_ticks,
            },
            sources=dict.fromkeys(("pid_before", "pid", "start_ticks_before", "start_ticks"), "measured"),
            advice="L1 and L2 start empty: hit shares are those of a cold server for a while"
            if is_calm
            else "find out what ended it (log and kernel log) before traffic returns; L1 and L2 start empty",
        )


def _judge_gone(context: Context, gone: GoneRank) -> tuple[Severity | None, str]:
    """None: not told any more, or not yet."""
    pid, server = gone.process.pid, gone.process.server
    age = context.sample.at_unix_seconds - gone.gone_unix_seconds
    death = death_of(context, gone)
    reason = f", {death.reason}" if death.reason else ""
    if death.orderly is False:
        kept = context.thresholds.event_seconds if gone.server_gone else float("inf")
        what = "ended with its server" if gone.server_gone else "is gone"
        return ("critical" if age <= kept else None), f"pid {pid} {what}{reason}"
    if gone.server_gone or death.orderly:
        is_told = age <= context.thresholds.exit_seconds
        return ("info" if is_told else None), f"pid {pid} ended with its server{reason}"
    others = any(rank.pid is not None and rank.state not in ("Z", "X") for rank in context.ranks_of(server))
    if not others and age < context.thresholds.exit_grace_seconds:
        return None, ""
    return "critical", f"pid {pid} is gone while its server's main process lives"


def _zombie(context: Context, rank: RankVerdict) -> Finding:
    assert rank.pid is not None
    death = why_ended(context, rank.server, rank.rank, rank.pid, context.sample.at_unix_seconds)
    reason = f", {death.reason}" if death.reason else ""
    return Finding(
        "RANK-DEAD",
        "info" if death.orderly else "critical",
        f"pid {rank.pid} is dead and not reaped (state {rank.state}){reason}",
        scope="rank",
        server=rank.server,
        rank=rank.rank,
        evidence={"pid": rank.pid, "state": rank.state},
        sources={"pid": "measured", "state": "measured"},
        advice=_LOST if death.orderly else _RESTART,
    )


def _absent(context: Context, reported: set[tuple[str, str]]) -> Iterator[Finding]:
    for server in context.servers:
        present = {rank.rank for rank in context.ranks_of(server.id) if rank.pid is not None}
        if server.plan is None or not server.is_ready or server.pid is None or not present:
            continue
        for planned in server.plan.ranks:
            if planned.rank not in present and (server.id, planned.rank) not in reported:
                yield Finding(
                    "RANK-DEAD",
                    "critical",
                    f"planned, and no such process under the server's main process {server.pid}",
                    scope="rank",
                    server=server.id,
                    rank=planned.rank,
                    evidence={"planned_ranks": len(server.plan.ranks), "seen_ranks": len(present)},
                    sources={"planned_ranks": "computed", "seen_ranks": "measured"},
                    advice=_RESTART,
                )
