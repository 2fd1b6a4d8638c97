"""What memory can still be taken: of a cgroup, of a NUMA node, and by which ranks.

File pages and reclaimable slab can be given back, shared memory and anonymous memory cannot (facts host-memory,
sections c and e).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from msgspec import Struct

from ranktop.sample import Cgroup, NumaNode, RankProcess, Sample


class GroupUse(Struct, frozen=True):
    """All rank cgroups under one limit. `working_set_bytes` is at least what is charged to that limit."""

    limit_path: str
    limit_bytes: int
    working_set_bytes: int
    members: tuple[str, ...]
    """Paths of the ranks' own cgroups."""
    source: str

    @property
    def headroom_bytes(self) -> int:
        return max(0, self.limit_bytes - self.working_set_bytes)


def working_set_bytes(cgroup: Cgroup) -> int | None:
    """Charged and not reclaimable: current - active_file - inactive_file - slab_reclaimable.

    None where current or the file pages are not told. v1 tells no reclaimable slab: there it stays counted.
    """
    if cgroup.current_bytes is None or cgroup.active_file_bytes is None or cgroup.inactive_file_bytes is None:
        return None
    reclaimable = cgroup.active_file_bytes + cgroup.inactive_file_bytes + (cgroup.slab_reclaimable_bytes or 0)
    return max(0, cgroup.current_bytes - reclaimable)


def group_uses(sample: Sample) -> tuple[GroupUse, ...]:
    """The limits that the ranks run under, tightest first. Ranks in one cgroup are counted once."""
    by_limit: dict[str, dict[str, Cgroup]] = {}
    for cgroup in sample.cgroups.values():
        if cgroup.limit_bytes is not None:
            by_limit.setdefault(cgroup.limit_path or cgroup.path, {})[cgroup.path] = cgroup
    found: list[GroupUse] = []
    for limit_path, members in by_limit.items():
        sets = [working_set_bytes(cgroup) for cgroup in members.values()]
        known = [size for size in sets if size is not None]
        limits = [cgroup.limit_bytes for cgroup in members.values() if cgroup.limit_bytes is not None]
        if known:
            simulated = sample.host is not None and sample.host.source == "simulated"
            source = "simulated" if simulated else "measured"
            found.append(GroupUse(limit_path, min(limits), sum(known), tuple(sorted(members)), source))
    return tuple(sorted(found, key=lambda use: use.headroom_bytes))


def node_headroom_bytes(node: NumaNode) -> int | None:
    """Free, file pages and reclaimable slab of a node, less its low watermarks. None where free is not told."""
    if node.free_bytes is None:
        return None
    parts = (node.free_bytes, node.active_file_bytes, node.inactive_file_bytes, node.slab_reclaimable_bytes)
    return max(0, sum(part or 0 for part in parts) - (node.watermark_low_bytes or 0))


def bound_node(rank: RankProcess, nodes: Iterable[NumaNode]) -> int | None:
    """The one node whose CPUs or memory a rank may use; None when it may use several, or nothing tells.

    SGLang starts ranks with `numactl --cpunodebind=N --membind=N`. The policy itself stands only in numa_maps, which is
    never read, so the CPUs stand for it.
    """
    with_memory = [node for node in nodes if node.total_bytes]
    if len(with_memory) < 2:
        return None
    # A stand-in's nodes divide this machine's CPUs and not its memory.
    is_simulated = any(node.source == "simulated" for node in with_memory)
    if rank.mems_allowed is not None and rank.mems_allowed.isdigit() and not is_simulated:
        return int(rank.mems_allowed)
    if not rank.cpus_allowed:
        return None
    inside = [node.node for node in with_memory if node.cpus and is_inside(rank.cpus_allowed, node.cpus)]
    return inside[0] if len(inside) == 1 else None


def bound_nodes(sample: Sample) -> frozenset[int]:
    """The nodes that some rank is bound to."""
    ranks = sample.processes.ranks if sample.processes else ()
    nodes = {bound_node(rank, sample.numa or ()) for rank in ranks}
    return frozenset(node for node in nodes if node is not None)


@functools.lru_cache(maxsize=1024)
def is_inside(cpus: str, of: str) -> bool:
    """Whether every CPU of one list is in the other (lists as the kernel writes them: `0-31,64-95`)."""
    return bool(numbers := cpu_numbers(cpus)) and numbers <= cpu_numbers(of)


@functools.lru_cache(maxsize=256)
def cpu_numbers(cpus: str) -> frozenset[int]:
    """The CPUs of a kernel list; parts that are no numbers are left out."""
    found: set[int] = set()
    for part in cpus.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            found.update(range(int(first), min(int(last or first), 1 << 14) + 1))
    return frozenset(found)
