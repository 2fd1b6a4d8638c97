"""Host pools that are not what the plan says: HOST-POOL-OVER, HOST-POOL-UNDER, HOST-POOL-MISSING."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding, Severity
from ranktop.plan.plan import Plan
from ranktop.reconcile.rules.evidence import size
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.verdict import Line, RankVerdict
from ranktop.reconcile.wording import POOL_NAMES


def pool_differs(context: Context) -> Iterator[Finding]:
    """A rank's pool differs from the plan by more than the tolerance of its line."""
    for rank in context.ranks:
        for line in rank.pools:
            if line.status not in ("over", "under") or line.difference is None or not line.planned:
                continue
            # Before ready the nearest in size may be a block of torch's pinned allocator, and the pool yet to come.
            is_block = (line.mapped_bytes or 0).bit_count() == 1
            if not is_block or context.ready_for_seconds(rank.server) is not None:
                yield _differs(context, rank, line)


def pool_missing(context: Context) -> Iterator[Finding]:
    """Ready, the plan has a pool, the maps are readable, SGLang's own allocator, and nothing of that size is there.

    A server that was told to end gives its pools back before its ranks are gone.
    """
    for server in context.servers:
        if not server.is_ready or server.plan is None:
            continue
        if uses_foreign_allocator(server.plan.launch.storage_backend):
            continue
        unseen = [
            (rank, line)
            for rank in context.ranks_of(server.id)
            for line in rank.pools
            if line.seen is None and line.planned and rank.pid in context.sample.mappings
        ]
        if not unseen or _is_ending(context, server.id):
            continue
        for rank, line in unseen:
            yield Finding(
                "HOST-POOL-MISSING",
                _severity(server.plan),
                f"{POOL_NAMES[line.line]} of {(line.planned or 0) / 1e9:.2f} GB is planned and not mapped",
                scope="rank",
                server=rank.server,
                rank=rank.rank,
                evidence={"line": line.line, "planned_bytes": line.planned},
                sources={"planned_bytes": "computed"},
                advice="compare the server's log line 'Allocating ... host memory' with this plan; "
                "if HiCache is off on purpose, the launch that ranktop plans from is not the one that runs",
            )


def _is_ending(context: Context, server: str) -> bool:
    """Its log says that it was told to end."""
    return any(event.server == server and event.fields.get("signal") == "SIGTERM" for event in context.events)


def uses_foreign_allocator(storage_backend: str | None) -> bool:
    """Mooncake and shared-memory owners allocate pools in their own way: absence of ours proves nothing."""
    return storage_backend in ("mooncake", "shm", "mori", "tensorcast")


def _differs(context: Context, rank: RankVerdict, line: Line) -> Finding:
    assert line.difference is not None
    assert line.planned
    assert line.seen is not None
    over = line.difference > 0
    plan = context.plan_of(rank.server)
    percent = 100 * line.difference / line.planned
    return Finding(
        "HOST-POOL-OVER" if over else "HOST-POOL-UNDER",
        _severity(plan),
        f"{POOL_NAMES[line.line]} is {size(line.seen)}, planned {size(line.planned)} ({percent:+.1f} %)",
        scope="rank",
        server=rank.server,
        rank=rank.rank,
        evidence={
            "line": line.line,
            "planned_bytes": line.planned,
            "seen_bytes": line.seen,
            "difference_bytes": line.difference,
            "difference_percent": round(percent, 2),
        },
        sources={"planned_bytes": "computed", "seen_bytes": line.source or ""},
        advice="this rank was not launched with the flags of its peers, or it allocated for another model or version: "
        "compare --hicache-size, --kv-cache-dtype and the model revision of this rank with the plan",
    )


def _severity(plan: Plan | None) -> Severity:
    """A plan of the nearest version may itself be what is wrong."""
    return "breach" if plan is not None and plan.sglang.exact else "warn"
