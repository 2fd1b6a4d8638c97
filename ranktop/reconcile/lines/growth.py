"""What the pools of a node take together where no rank's maps can be read: by its log, and by how far Shmem grew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ranktop.reconcile.compare import compare
from ranktop.reconcile.logged import HALF_DIGIT_BYTES
from ranktop.reconcile.verdict import Line, RankVerdict
from ranktop.sample import Host

_POOLS = ("host.primary", "host.indexer", "host.draft", "host.draft_indexer", "host.other")


def with_pool_growth(
    lines: Iterable[Line], ranks: Sequence[RankVerdict], shmem_before_bytes: int | None, host: Host | None
) -> tuple[Line, ...]:
    """`host.pools` filled in. `shmem_before_bytes` is Shmem from before any server ran."""
    return tuple(
        _pools(line, ranks, shmem_before_bytes, host) if line.line == "host.pools" and line.seen is None else line
        for line in lines
    )


def _pools(line: Line, ranks: Sequence[RankVerdict], shmem_before_bytes: int | None, host: Host | None) -> Line:
    pools = [pool for rank in ranks for pool in rank.lines if pool.line in _POOLS]
    logged = [pool.seen for pool in pools if pool.source == "logged" and pool.seen is not None]
    if not logged:
        return line
    planned = [pool.planned for pool in pools if pool.planned]
    total = sum(planned) if planned else None
    if host is None or host.shmem_bytes is None or shmem_before_bytes is None:
        return compare(
            "host.pools",
            total,
            sum(logged),
            tolerance=HALF_DIGIT_BYTES * len(logged),
            source="logged",
            detail=f"sum over {len(ranks)} ranks as logged",
        )
    # Both readings are rounded down to the table's unit.
    tolerance = host.resolution_bytes or host.page_size_bytes * len(logged)
    return compare(
        "host.pools",
        total if total is not None else sum(logged),
        host.shmem_bytes - shmem_before_bytes,
        tolerance=tolerance,
        source="inferred",
        detail=f"growth of Shmem since before the server; {sum(logged) / 1e9:.2f} GB logged over {len(ranks)} ranks",
    )
