"""Ranks that went away: RANK-DEAD."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding
from ranktop.reconcile.rules.rule import Context


def rank_dead(context: Context) -> Iterator[Finding]:
    """A rank that was seen is gone or a zombie; or a ready server lacks a rank that its plan has."""
    reported: set[tuple[str, str]] = set()
    for gone in context.gone:
        tag = str(gone.process.tag)
        reported.add((gone.process.server, tag))
        yield Finding(
            "RANK-DEAD",
            "info" if gone.server_gone else "critical",
            f"pid {gone.process.pid} ended with its server"
            if gone.server_gone
            else f"pid {gone.process.pid} is gone while its server's main process lives",
            scope="rank",
            server=gone.process.server,
            rank=tag,
            evidence={"pid": gone.process.pid, "start_ticks": gone.process.start_ticks},
            sources={"pid": "measured", "start_ticks": "measured"},
            advice="the L1 and L2 content of this rank is lost"
            if gone.server_gone
            else "read the end of the server's log and the kernel log for a kill; the group cannot serve without "
            "this rank, so drain the node and restart the server",
        )
    for rank in context.ranks:
        if rank.state in ("Z", "X") and (rank.server, rank.rank) not in reported:
            reported.add((rank.server, rank.rank))
            yield Finding(
                "RANK-DEAD",
                "critical",
                f"pid {rank.pid} is dead and not reaped (state {rank.state})",
                scope="rank",
                server=rank.server,
                rank=rank.rank,
                evidence={"pid": rank.pid, "state": rank.state},
                sources={"pid": "measured", "state": "measured"},
                advice="read the end of the server's log and the kernel log for a kill, then restart the server",
            )
    yield from _absent(context, reported)


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
                    advice="read the end of the server's log and the kernel log for a kill; the group cannot serve "
                    "without this rank, so drain the node and restart the server",
                )
