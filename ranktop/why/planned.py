"""What the launch was to hold in host memory: logged pools or the computed plan, times the ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ranktop.plan import LaunchRequest, Plan, PlanError, compute_plan, launch_from_fields
from ranktop.reconcile.logged import LoggedServer
from ranktop.reconcile.plans import plan_server
from ranktop.why.death import Certainty, Claim
from ranktop.why.evidence import Evidence


class Planned(NamedTuple):
    """Host pools of one server on this node."""

    per_rank_bytes: int
    ranks: int
    total_bytes: int
    certainty: Certainty
    source: str
    how: str


def planned_pools(evidence: Evidence, server: str | None = None) -> Planned | None:
    """The best that is known: what a log says was allocated, a recording's plan, the given or the last launch."""
    return next(_all(evidence, server), None)


def planned_claim(planned: Planned | None, limit_bytes: int | None) -> Claim:
    """The sum over the ranks, and how it stands to the limit that was hit."""
    if planned is None:
        return Claim("planned", "no launch is known: give --log FILE, --launch FILE or --recording FILE", "unknown")
    ranks = "rank" if planned.ranks == 1 else "ranks"
    text = (
        f"{planned.ranks} {ranks} x {planned.per_rank_bytes / 1e9:.2f} GB = {planned.total_bytes / 1e9:.2f} GB of host "
        f"pools {planned.how}"
    )
    if limit_bytes:
        share = 100 * planned.total_bytes / limit_bytes
        text += f", {share:.0f} % of the limit"
    return Claim(
        "planned",
        text,
        planned.certainty,
        planned.source,
        {
            "ranks": planned.ranks,
            "per_rank_bytes": planned.per_rank_bytes,
            "total_bytes": planned.total_bytes,
            "limit_bytes": limit_bytes,
        },
    )


def _all(evidence: Evidence, server: str | None) -> Iterator[Planned]:
    for log in evidence.logs:
        known = plan_server(None, None, evidence.launch, None, log.logged if log.logged.tags else None)
        if log.logged.pools:
            yield _of_log(log.logged, known.plan, log.source)
        elif known.plan is not None and (found := _of_plan(known.plan, log.source)) is not None:
            yield found
    for recorded in evidence.recordings:
        plans = [plan for name, plan in recorded.plans if server in (None, name)]
        yield from (found for plan in plans if (found := _of_plan(plan, recorded.source)) is not None)
    if evidence.launch is not None and (found := _computed(evidence.launch, None, "--launch")) is not None:
        yield found
    for launch in reversed(evidence.launches):
        if server in (None, launch.server) and launch.args:
            request = launch_from_fields(launch.args, "log", launch.version)
            found = _computed(request, launch.l1_tokens, "launch history", launch.version)
            if found is not None:
                yield found


def _of_log(logged: LoggedServer, plan: Plan | None, source: str) -> Planned:
    """Ranks that did not log a pool are taken to hold what the others logged."""
    lines = {pool.line for pools in logged.pools.values() for pool in pools}
    largest = {
        line: max(pool.size_bytes for pools in logged.pools.values() for pool in pools if pool.line == line)
        for line in lines
    }
    ranks = len(plan.ranks) if plan is not None else max(len(logged.pools), len(logged.tags))
    told = sum(pool.size_bytes for pools in logged.pools.values() for pool in pools)
    per_rank = sum(largest.values())
    everyone = len(logged.pools) >= ranks and all(
        lines == {pool.line for pool in pools} for pools in logged.pools.values()
    )
    if everyone:
        return Planned(round(told / ranks), ranks, told, "proven", source, "as every rank logged them")
    how = "if every rank holds what some ranks logged"
    return Planned(per_rank, ranks, per_rank * ranks, "likely", source, how)


def _of_plan(plan: Plan, source: str) -> Planned | None:
    sizes = [
        rank.host.allocated_bytes + rank.host.draft_bytes + rank.host.draft_indexer_bytes
        for rank in plan.ranks
        if rank.host is not None and rank.host.allocated_bytes is not None
    ]
    if not sizes or len(sizes) < len(plan.ranks):
        return None
    how = f"as computed for SGLang {plan.sglang.version}"
    return Planned(max(sizes), len(sizes), sum(sizes), "likely", source, how)


def _computed(
    request: LaunchRequest, device_tokens: int | None, source: str, version: str | None = None
) -> Planned | None:
    try:
        plan = compute_plan(request, version=version, device_tokens=device_tokens)
    except PlanError:
        return None
    return _of_plan(plan, source)
