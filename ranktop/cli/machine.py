"""This host as numbers for the plan's rules, read once through the collectors. What cannot be read stays None."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from collectors.cgroup import CgroupCollector
from collectors.hostmem import HostMemCollector
from collectors.numa import NumaNodesCollector
from collectors.numa_topology import parse_id_list
from collectors.nvml import NvmlCollector
from collectors.processes import ProcessesCollector
from collectors.procfs import line_value, parse_memlock_limit, read_file
from ranktop.cli.errors import UsageProblem
from ranktop.plan.machine import Machine, MemoryNode
from ranktop.sample import Cgroup, Gpus, NoData, NumaNode, Processes, RankProcess, RankTag, SourceError

_Read = TypeVar("_Read")


class HostReading(Struct, frozen=True):
    """The machine, what a running server takes beside its pools, and what could not be read."""

    machine: Machine
    other_bytes_per_rank: int | None = None
    """Private memory of a running rank, the mean over them; None when none runs here."""
    unread: tuple[str, ...] = ()


def read_host(
    proc_root: str, sys_root: str, *, replacing: int | None = None, visible_devices: str | None = None
) -> HostReading:
    """Reads the host. `replacing` is the main process of the server that will go: its memory is credited.

    Raises UsageProblem when that process is no SGLang server here.
    """
    now, unread = time.time(), list[str]()

    def attempt(read: Callable[[Processes | None, float], _Read], processes: Processes | None = None) -> _Read | None:
        try:
            return read(processes, now)
        except (NoData, SourceError) as error:
            unread.append(str(error))
            return None

    host = attempt(HostMemCollector(proc_root, sys_root).read)
    nodes = attempt(NumaNodesCollector(sys_root, proc_root).read) or ()
    gpus = attempt(NvmlCollector(sys_root=sys_root).read)
    running = attempt(ProcessesCollector(proc_root).read) or Processes()
    leaving = _ranks_of(running, replacing)
    pid = leaving[0].pid if leaving else os.getpid()
    cgroup = attempt(CgroupCollector(proc_root, sys_root).read, _as_processes(pid))
    own = (cgroup or {}).get(pid)
    memory_nodes = tuple(_memory_node(node) for node in nodes)
    allowed = _allowed(proc_root, b"Mems_allowed_list:")
    cpus = _allowed(proc_root, b"Cpus_allowed_list:")
    available = host.available_bytes if host is not None else None
    if available is not None and allowed and set(allowed) < {node.node for node in memory_nodes}:
        available = min(available, sum(node.headroom_bytes for node in memory_nodes if node.node in allowed))
    measured = leaving or running.ranks
    return HostReading(
        Machine(
            available_bytes=available,
            total_bytes=host.total_bytes if host is not None else None,
            cgroup_headroom_bytes=_headroom(own, credit_page_cache=True),
            cgroup_headroom_strict_bytes=_headroom(own, credit_page_cache=False),
            nodes=memory_nodes,
            gpu_nodes=_gpu_nodes(gpus, visible_devices),
            allowed_nodes=allowed,
            allowed_cpus=len(cpus) if cpus is not None else None,
            hugetlb_free_bytes=sum(page.page_size_bytes * (page.free_pages or 0) for page in host.hugepages)
            if host is not None
            else None,
            memlock_bytes=_memlock(proc_root),
            live_pool_bytes=sum(_pools(rank) for rank in running.ranks),
            credited_bytes=sum(_pools(rank) + (rank.rss_anon_bytes or 0) for rank in leaving),
            is_this_host=True,
        ),
        sum(rank.rss_anon_bytes or 0 for rank in measured) // len(measured) if measured else None,
        tuple(unread),
    )


def _ranks_of(running: Processes, main_pid: int | None) -> list[RankProcess]:
    if main_pid is None:
        return []
    server = next((server for server in running.servers if server.pid == main_pid), None)
    if server is None:
        known = ", ".join(str(server.pid) for server in running.servers) or "none runs here"
        raise UsageProblem(f"preflight: --replacing {main_pid}: no SGLang server has this main process ({known})")
    return [rank for rank in running.ranks if rank.server == server.id]


def _as_processes(pid: int) -> Processes:
    return Processes(ranks=(RankProcess("", RankTag(), pid, 0, "R"),))


def _pools(rank: RankProcess) -> int:
    return (rank.rss_shmem_bytes or 0) + (rank.hugetlb_bytes or 0)


def _headroom(cgroup: Cgroup | None, *, credit_page_cache: bool) -> int | None:
    if cgroup is None or cgroup.limit_bytes is None or cgroup.current_bytes is None:
        return None
    cache = (cgroup.active_file_bytes or 0) + (cgroup.inactive_file_bytes or 0) if credit_page_cache else 0
    return max(cgroup.limit_bytes - cgroup.current_bytes + cache, 0)


def _memory_node(node: NumaNode) -> MemoryNode:
    """Free and reclaimable memory of the node above its low watermarks."""
    reclaimable = (node.active_file_bytes, node.inactive_file_bytes, node.slab_reclaimable_bytes)
    headroom = (node.free_bytes or 0) + sum(size or 0 for size in reclaimable) - (node.watermark_low_bytes or 0)
    hugepages = sum(page.page_size_bytes * (page.free_pages or 0) for page in node.hugepages)
    return MemoryNode(node.node, max(headroom, 0), hugepages)


def _gpu_nodes(gpus: Gpus | None, visible_devices: str | None) -> tuple[int | None, ...] | None:
    """NUMA node by CUDA index: NVML's order through `CUDA_VISIBLE_DEVICES` (indices or UUIDs)."""
    if gpus is None or not gpus.gpus:
        return None
    if not visible_devices:
        return tuple(gpu.numa_node for gpu in gpus.gpus)
    by_name = {str(gpu.index): gpu.numa_node for gpu in gpus.gpus}
    by_name |= {gpu.uuid: gpu.numa_node for gpu in gpus.gpus if gpu.uuid}
    return tuple(by_name.get(word.strip()) for word in visible_devices.split(","))


def _allowed(proc_root: str, key: bytes) -> tuple[int, ...] | None:
    """The ids of a `..._allowed_list` of this process."""
    try:
        value = line_value(read_file(f"{proc_root}/self/status", 1 << 16), key)
    except OSError:
        return None
    return parse_id_list(value.decode()) if value is not None else None


def _memlock(proc_root: str) -> int | None:
    """RLIMIT_MEMLOCK of this process in bytes; None when unlimited or unreadable."""
    try:
        limit = parse_memlock_limit(read_file(f"{proc_root}/self/limits", 1 << 16))
    except OSError:
        return None
    return None if limit is None or limit < 0 else limit
