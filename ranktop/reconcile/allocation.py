"""What host memory the ranks have still to allocate, and on which NUMA node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ranktop.reconcile.headrooms import bound_node
from ranktop.reconcile.unchanged import Unchanged
from ranktop.reconcile.verdict import Line, RankVerdict
from ranktop.sample import Mapping, Sample


class Pending(NamedTuple):
    """One living rank's pools: planned, and of that what is not resident yet."""

    server: str
    rank: str
    pid: int
    planned_bytes: int
    pending_bytes: int
    node: int | None
    """The NUMA node that it is bound to, None where it is not or nothing tells."""


def pending_pools(sample: Sample, ranks: Sequence[RankVerdict], unchanged: Unchanged) -> tuple[Pending, ...]:
    """By rank whose maps are readable. A rank that is dead or ending allocates nothing any more."""
    processes = {rank.pid: rank for rank in sample.processes.ranks} if sample.processes else {}
    found: list[Pending] = []
    for rank in ranks:
        process = processes.get(rank.pid) if rank.pid is not None else None
        if process is None or process.pid not in sample.mappings or process.orphan or process.state in ("Z", "X"):
            continue
        mappings, shared, huge = sample.mappings[process.pid], process.rss_shmem_bytes, process.hugetlb_bytes
        planned, pending = unchanged.of(("pending", rank.pid), _bytes, rank.pools, mappings, shared, huge)
        node = bound_node(process, sample.numa or ()) if pending else None
        found.append(Pending(rank.server, rank.rank, process.pid, planned, pending, node))
    return tuple(found)


def _bytes(
    pools: Sequence[Line], mappings: Sequence[Mapping], rss_shmem_bytes: int | None, hugetlb_bytes: int | None
) -> tuple[int, int]:
    """Planned, and of that what is not resident."""
    planned = pending = mapped = 0
    for line in pools:
        if line.planned:
            planned += int(line.planned)
            if line.seen is None:
                pending += int(line.planned)
            else:
                mapped += int(line.seen)
    # Resident pools cannot be told from other memory where they are private.
    if rss_shmem_bytes is not None and not any(mapping.kind == "private_thp" for mapping in mappings):
        pending += max(0, mapped - rss_shmem_bytes - (hugetlb_bytes or 0))
    return planned, min(planned, pending)
