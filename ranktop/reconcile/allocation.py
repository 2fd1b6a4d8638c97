"""What host memory the ranks have still to allocate, and on which NUMA node."""

from __future__ import annotations

from typing import NamedTuple

from ranktop.reconcile.headrooms import bound_node
from ranktop.reconcile.verdict import RankVerdict
from ranktop.sample import RankProcess, Sample


class Pending(NamedTuple):
    """One living rank's pools: planned, and of that what is not resident yet."""

    server: str
    rank: str
    planned_bytes: int
    pending_bytes: int
    node: int | None
    """The NUMA node that it is bound to, None where it is not or nothing tells."""


def pending_pools(sample: Sample, ranks: tuple[RankVerdict, ...]) -> tuple[Pending, ...]:
    """By rank whose maps are readable. A rank that is dead or ending allocates nothing any more."""
    processes = {rank.pid: rank for rank in sample.processes.ranks} if sample.processes else {}
    found: list[Pending] = []
    for rank in ranks:
        process = processes.get(rank.pid) if rank.pid is not None else None
        if process is None or process.pid not in sample.mappings or process.orphan or process.state in ("Z", "X"):
            continue
        planned = pending = mapped = 0
        for line in rank.pools:
            if line.planned:
                planned += int(line.planned)
                if line.seen is None:
                    pending += int(line.planned)
                else:
                    mapped += int(line.seen)
        pending += max(0, mapped - resident) if (resident := _resident(sample, process)) is not None else 0
        node = bound_node(process, sample.numa or ()) if pending else None
        found.append(Pending(rank.server, rank.rank, planned, min(planned, pending), node))
    return tuple(found)


def _resident(sample: Sample, process: RankProcess) -> int | None:
    """Resident pools of a rank; None where they cannot be told from its other memory."""
    if process.rss_shmem_bytes is None:
        return None
    if any(mapping.kind == "private_thp" for mapping in sample.mappings[process.pid]):
        return None
    return process.rss_shmem_bytes + (process.hugetlb_bytes or 0)
