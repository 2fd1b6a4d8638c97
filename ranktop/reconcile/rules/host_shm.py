"""Resident shared memory of a rank that no planned pool explains: HOST-SHM-UNEXPLAINED."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding
from ranktop.reconcile.rules.rule import Context

_NAMED = 4
_SHARED = frozenset({"shared_anon", "memfd"})


def shm_unexplained(context: Context) -> Iterator[Finding]:
    """Ready, maps readable, every planned pool found, and more is resident than they hold."""
    limits = context.thresholds
    processes = {rank.pid: rank for rank in context.sample.processes.ranks} if context.sample.processes else {}
    planned = {(rank.server, rank.rank): rank.planned_bytes for rank in context.pending}
    for rank in context.ranks:
        process = processes.get(rank.pid) if rank.pid is not None else None
        known = planned.get((rank.server, rank.rank))
        if process is None or process.rss_shmem_bytes is None or known is None:
            continue
        if process.rss_shmem_bytes < limits.unexplained_bytes:
            continue
        mappings = context.sample.mappings[process.pid]
        # Huge pages and private mappings are not part of RssShmem. Most ranks end here.
        is_all_shared = {mapping.kind for mapping in mappings} <= _SHARED
        if process.rss_shmem_bytes - (known if is_all_shared else 0) < limits.unexplained_bytes:
            continue
        pools = [line for line in rank.pools if line.planned]
        is_ready = context.ready_for_seconds(rank.server) is not None
        if not is_ready or not pools or any(line.mapped_bytes is None for line in pools):
            continue
        claimed = [line.mapped_bytes or 0 for line in pools]
        counted = sum(
            mapping.size_bytes for mapping in mappings if mapping.kind in _SHARED and mapping.size_bytes in claimed
        )
        extra = process.rss_shmem_bytes - counted
        if extra < limits.unexplained_bytes:
            continue
        others = [mapping.size_bytes for mapping in mappings if mapping.size_bytes not in claimed]
        powers = sorted((size for size in others if size.bit_count() == 1), reverse=True)
        hint = (
            f"; {len(powers)} mappings of a power of two, as torch's pinned allocator makes and keeps them"
            if sum(powers) >= extra / 2
            else ""
        )
        yield Finding(
            "HOST-SHM-UNEXPLAINED",
            "warn" if extra >= limits.unexplained_warn_bytes else "info",
            f"{extra / 1e9:.2f} GB of shared memory are resident beyond the planned pools{hint}",
            scope="rank",
            server=rank.server,
            rank=rank.rank,
            evidence={
                "unexplained_bytes": extra,
                "rss_shmem_bytes": process.rss_shmem_bytes,
                "pools_bytes": counted,
                "largest_other_mappings_bytes": sorted(others, reverse=True)[:_NAMED],
                "power_of_two_bytes": sum(powers),
            },
            sources=dict.fromkeys(
                (
                    "unexplained_bytes",
                    "rss_shmem_bytes",
                    "pools_bytes",
                    "largest_other_mappings_bytes",
                    "power_of_two_bytes",
                ),
                "measured",
            ),
            advice="count it into --other of `ranktop preflight`; a second pool of a hybrid model (Mamba, SWA) takes "
            "--hicache-size again, and the server's 'Allocating ... host memory' lines name it",
        )
