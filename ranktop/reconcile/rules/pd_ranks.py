"""Ranks that decode cannot reach: PD-RANK-MISSING."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ranktop.finding import Finding
from ranktop.reconcile.ranklabels import labels_of
from ranktop.reconcile.rules.evidence import evidence
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.verdict import RankVerdict, ServerVerdict

_REGISTER = (
    "decode requests to this rank wait until they time out: check that this host reaches "
    "--disaggregation-bootstrap-port on the prefill node, then restart this server"
)


def pd_rank_missing(context: Context) -> Iterator[Finding]:
    """A prefill rank that gave up registering, or that transfers nothing while its peers do."""
    for server in context.servers:
        gave_up = context.log.newest(server.id, "pd_register_gave_up")
        waiting = _waiting(context, server)
        for rank, event in gave_up.items():
            yield Finding(
                "PD-RANK-MISSING",
                "breach",
                "all attempts to register with the bootstrap server failed" + (f"; {waiting}" if waiting else ""),
                scope="rank" if rank is not None else "server",
                server=server.id,
                rank=rank,
                **evidence(
                    "logged",
                    attempts=event.fields.get("attempts"),
                    last_reason=_last_reason(context, server.id, rank),
                ),
                advice=_REGISTER,
            )
        yield from _unregistered(context, server, frozenset(gave_up))
        if _all_ranks_transfer(context, server):
            yield from _without_transfers(context, server, frozenset(gave_up))


def _unregistered(context: Context, server: ServerVerdict, known: frozenset[str | None]) -> Iterator[Finding]:
    """By the bootstrap server: its answer for each rank once it is ready, before that its count."""
    bootstrap = context.sample.bootstraps.get(server.id)
    if bootstrap is None or server.role != "prefill":
        return
    for rank in context.ranks_of(server.id):
        if rank.line("pd.registered").seen == 0 and rank.rank not in known:
            yield Finding(
                "PD-RANK-MISSING",
                "breach",
                "the bootstrap server has no registration of this rank (404), though it counts enough of them",
                scope="rank",
                server=server.id,
                rank=rank.rank,
                **evidence("reported", registered=bootstrap.registered_ranks, expected=bootstrap.expected_ranks),
                advice=_REGISTER,
            )
    ready = context.ready_for_seconds(server.id)
    is_due = context.since_start or (ready is not None and ready >= context.thresholds.attach_seconds)
    waiting = _waiting(context, server)
    # Ranks that are known to have given up say it themselves.
    if waiting and is_due and not known:
        yield Finding(
            "PD-RANK-MISSING",
            "breach",
            waiting,
            scope="server",
            server=server.id,
            **evidence("reported", registered=bootstrap.registered_ranks, expected=bootstrap.expected_ranks),
            advice=_REGISTER,
        )


def _waiting(context: Context, server: ServerVerdict) -> str:
    """What a bootstrap server that is not ready waits for; empty where none is known to wait."""
    bootstrap = context.sample.bootstraps.get(server.id)
    if bootstrap is None or server.role != "prefill" or bootstrap.is_ready:
        return ""
    count, expected = bootstrap.registered_ranks, bootstrap.expected_ranks
    if count is None or expected is None or count >= expected:
        return ""
    return f"{count} of {expected} ranks have registered with the bootstrap server, and it serves nobody until all do"


def _without_transfers(context: Context, server: ServerVerdict, known: frozenset[str | None]) -> Iterator[Finding]:
    kept = context.ledgers.get(server.id, ())
    totals = kept[-1].transfers_by_rank if kept else {}
    least = context.thresholds.pd_peer_transfers
    ranks = context.ranks_of(server.id)
    by_rank = {rank.rank: _of_rank(context, rank, totals) for rank in ranks}
    for rank in ranks:
        peers = [count for tag, count in by_rank.items() if tag != rank.rank]
        if by_rank[rank.rank] or not peers or min(peers) < least or rank.rank in known:
            continue
        yield Finding(
            "PD-RANK-MISSING",
            "breach",
            f"no transfer from this rank, its peers have at least {min(peers):.0f}",
            scope="rank",
            server=server.id,
            rank=rank.rank,
            **evidence("reported", transfers=0, fewest_peer_transfers=min(peers)),
            advice="under LayerSplit every rank sends its own layers: what decode gets from this rank is not there. "
            "Drain this server, and read its log for registration errors",
        )


def _all_ranks_transfer(context: Context, server: ServerVerdict) -> bool:
    """Else context-parallel ranks other than 0 are dummies and never see a transfer (0.5.18, `disaggregation/`)."""
    return server.role == "prefill" and server.plan is not None and server.plan.layer_split.active


def _of_rank(context: Context, rank: RankVerdict, totals: Mapping[str, float]) -> float:
    processes = context.sample.processes
    tag = next(
        (
            one.tag
            for one in (processes.ranks if processes else ())
            if (one.server, str(one.tag)) == (rank.server, rank.rank)
        ),
        None,
    )
    if tag is not None:
        return totals.get(str(labels_of(tag)), 0.0)
    plan = context.rank_plan(rank)
    return totals.get(f"{plan.dp}/{plan.pp}/{plan.tp}", 0.0) if plan is not None else 0.0


def _last_reason(context: Context, server: str, rank: str | None) -> str | None:
    attempt = context.log.newest(server, "pd_register_failed").get(rank)
    return attempt.fields.get("reason") if attempt is not None else None
