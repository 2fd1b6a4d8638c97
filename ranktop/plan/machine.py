"""The machine that a plan is held against, as plain numbers: read elsewhere, or asked about with --memory, --nodes."""

from __future__ import annotations

from msgspec import Struct

from ranktop.plan.plan import GIB, HostPlan, Plan

OTHER_BYTES_PER_RANK = 6 * GIB + 6 * GIB // 10
"""Host memory of a rank and its share of the server beside the pools. 8 ranks of GLM-5.2-FP8 on one H200 host took
53 GiB (`free -g` before and after, without shared memory)."""

UNPIN_SECONDS_PER_BYTE = 60 / 100e9
"""Unpinning and unmapping a pool takes up to a minute for 100 GB."""


class MemoryNode(Struct, frozen=True):
    """One NUMA node: what a strict membind to it can still take."""

    node: int
    headroom_bytes: int
    hugepages_free_bytes: int = 0


class Machine(Struct, frozen=True):
    """Numbers of one host. None where nobody said; a rule whose input is None stays silent."""

    available_bytes: int | None = None
    """MemAvailable."""
    total_bytes: int | None = None
    cgroup_headroom_bytes: int | None = None
    """The smallest limit over ancestors minus what cannot be reclaimed; None without a limit."""
    cgroup_headroom_strict_bytes: int | None = None
    """The same with page cache counted as used, as 0.5.21 does."""
    nodes: tuple[MemoryNode, ...] = ()
    gpu_nodes: tuple[int | None, ...] | None = None
    """NUMA node of every GPU by CUDA index; None when no GPU was seen."""
    allowed_nodes: tuple[int, ...] | None = None
    allowed_cpus: int | None = None
    hugetlb_free_bytes: int | None = None
    memlock_bytes: int | None = None
    """RLIMIT_MEMLOCK; None when unlimited or not known."""
    live_pool_bytes: int = 0
    """Host pools of servers that run here now."""
    credited_bytes: int = 0
    """Of those, what goes with the server that is being replaced; already part of no other number."""
    is_this_host: bool = False

    @property
    def limit_bytes(self) -> int | None:
        """What may be allocated: the lesser of MemAvailable and the cgroup's headroom, with the credit."""
        known = [value for value in (self.available_bytes, self.cgroup_headroom_bytes) if value is not None]
        return min(known) + self.credited_bytes if known else None


def asked_machine(memory_gib: float | None, nodes: int | None, ranks: int) -> Machine:
    """The machine of `plan --memory --nodes`: its memory split evenly, its GPUs in order."""
    if memory_gib is None:
        return Machine()
    memory = int(memory_gib * GIB)
    count = nodes or 1
    split = tuple(MemoryNode(node, memory // count) for node in range(count)) if count > 1 else ()
    gpu_nodes = tuple(index * count // ranks for index in range(ranks)) if count > 1 else None
    return Machine(available_bytes=memory, total_bytes=memory, nodes=split, gpu_nodes=gpu_nodes)


def pool_bytes(host: HostPlan, hugepage_bytes: int | None = None) -> int | None:
    """Everything that one rank maps or tables for its pools; each buffer rounded up to a huge page when asked."""
    if host.primary_bytes is None or host.indexer_allocated_bytes is None:
        return None
    buffers = (host.primary_bytes, host.indexer_allocated_bytes, host.draft_bytes, host.draft_indexer_bytes)
    if hugepage_bytes:
        buffers = tuple(-(-size // hugepage_bytes) * hugepage_bytes for size in buffers)
    return sum(buffers) + (host.bookkeeping_bytes or 0)


def needed_bytes(plan: Plan, hugepage_bytes: int | None = None) -> int | None:
    """What the pools of all this node's ranks take; None when a size is not known."""
    sizes = [pool_bytes(rank.host, hugepage_bytes) for rank in plan.ranks if rank.host is not None]
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def node_of_ranks(plan: Plan, machine: Machine) -> tuple[int | None, ...]:
    """The NUMA node that each rank binds to: `--numa-node` by GPU index, else its GPU's node, else None."""
    numa_node = plan.launch.numa_node
    found: list[int | None] = []
    for rank in plan.ranks:
        index = rank.cuda_index
        if numa_node:
            word = numa_node[index] if index < len(numa_node) else ""
            found.append(int(word) if word.isdigit() else None)
        elif machine.gpu_nodes is not None and len(machine.nodes) > 1 and index < len(machine.gpu_nodes):
            found.append(machine.gpu_nodes[index])
        else:
            found.append(None)
    return tuple(found)
