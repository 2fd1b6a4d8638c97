"""The hardware that a laptop does not have: eight GPUs, two NUMA nodes, a host of 1511 GB at the demo's scale.

GPUs keep their real size. The host is as much smaller as the pools are, so that pools, total and the 10 GiB reserve
stand in their real proportions; what is resident is what the ranks really hold.
"""

from __future__ import annotations

import math

from msgspec import Struct

from ranktop.demo.launch import DEVICE_TOKENS, PAGE_TOKENS, RANKS, REAL_HICACHE_GB
from ranktop.demo.sizes import PoolSizes, pool_sizes
from ranktop.sample import Gpu, GpuProcess, Gpus, Host, NumaNode, Placement, Pressure

GIB = 1 << 30
SOURCE = "simulated"
GRAPH_GIB = 1.86
_NODES = 2
_CONTEXT_GIB = 1.07
_REST_GIB = 2.4
_GPU_TOTAL_BYTES = 143771 << 20
_GPU_RESERVED_BYTES = 725 << 20
_REAL_HOST_BYTES = 1511 * 10**9
_REAL_RESERVE_BYTES = 10 * GIB
_REAL_OTHER_BYTES = 14 * 10**9
"""System, page cache that cannot go, and the ranks' own heaps."""
_REAL_FILE_BYTES = 60 * 10**9


class RankUse(Struct, frozen=True):
    """What one live rank holds. `shmem_bytes` is RssShmem of its /proc/PID/status."""

    tp: int
    pid: int
    shmem_bytes: int
    far_percent: float = 0.0


def numa_node(tp: int) -> int:
    """The node of a rank's GPU: 0 to 3 on node 0, 4 to 7 on node 1."""
    return tp * _NODES // RANKS


def weight_gib(tp: int) -> float:
    """`weight_memory_usage_gb` of a rank."""
    return round(91.4 + 0.011 * tp, 3)


def kv_gib(sizes: PoolSizes) -> float:
    """`kv_cache_memory_usage_gb`: the L1 pool has one page more than its tokens."""
    return (DEVICE_TOKENS + PAGE_TOKENS) * sizes.device_bytes_per_token / GIB


def startup_available_gib(tp: int, sizes: PoolSizes) -> float:
    """Free HBM after graph capture."""
    free = (_GPU_TOTAL_BYTES - _GPU_RESERVED_BYTES) / GIB
    return round(free - _CONTEXT_GIB - weight_gib(tp) - kv_gib(sizes) - GRAPH_GIB, 2)


def scale() -> float:
    """How much smaller the demo's host is: its pools over those of a 120 GB launch."""
    return pool_sizes().allocated_bytes / pool_sizes(REAL_HICACHE_GB).allocated_bytes


def simulated_gpus(ranks: list[RankUse], sizes: PoolSizes, seconds: float, load: float) -> Gpus:
    """All GPUs after `seconds` of node time at `load` (0 idle, 1 busy). A GPU without its rank is empty."""
    by_tp = {rank.tp: rank for rank in ranks}
    return Gpus(
        source=SOURCE,
        driver_version="simulated",
        gpus=tuple(_gpu(tp, by_tp.get(tp), sizes, seconds, load) for tp in range(RANKS)),
    )


def _gpu(tp: int, rank: RankUse | None, sizes: PoolSizes, seconds: float, load: float) -> Gpu:
    wave = math.sin(seconds / 11 + tp)
    usable = _GPU_TOTAL_BYTES - _GPU_RESERVED_BYTES
    held = 0
    if rank is not None:
        moving = 0.02 * wave + 0.05 * load
        held = int((_CONTEXT_GIB + weight_gib(tp) + kv_gib(sizes) + GRAPH_GIB + _REST_GIB + moving) * GIB)
        held -= held % (2 << 20)
    busy = load if rank is not None else 0.0
    return Gpu(
        index=tp,
        uuid=f"GPU-00000000-0000-4000-8000-{tp:012d}",
        name="NVIDIA H200 (simulated)",
        pci_bus_id=f"00000000:{0x18 + 0x11 * tp:02X}:00.0",
        numa_node=numa_node(tp),
        total_bytes=_GPU_TOTAL_BYTES,
        reserved_bytes=_GPU_RESERVED_BYTES,
        used_bytes=held,
        free_bytes=usable - held,
        utilization_percent=round(min(100.0, max(0.0, 96 * busy + 3 * wave * busy)), 0),
        memory_utilization_percent=round(min(100.0, 58 * busy), 0),
        temperature_celsius=round(34 + 26 * busy + wave, 0),
        power_watts=round(118 + 420 * busy + 8 * wave, 1),
        ecc_uncorrected_count=0,
        remap_pending=False,
        remap_failed=False,
        clocks_event_reasons=0,
        mig=False,
        processes=() if rank is None else (GpuProcess(rank.pid, held),),
    )


def simulated_host(ranks: list[RankUse], seconds: float, pressure_percent: float = 0.0, other: float = 1.0) -> Host:
    """The scaled host. `other` multiplies what is in use beside the pools."""
    total = int(_REAL_HOST_BYTES * scale())
    pools = sum(rank.shmem_bytes for rank in ranks)
    used = int(_REAL_OTHER_BYTES * scale() * other * (1 + 0.01 * math.sin(seconds / 17)))
    file_bytes = min(int(_REAL_FILE_BYTES * scale()), max(0, total - pools - used) // 2)
    available = max(0, total - pools - used)
    return Host(
        source=SOURCE,
        total_bytes=total,
        available_bytes=available,
        free_bytes=available - file_bytes,
        anon_bytes=used * 3 // 4,
        shmem_bytes=pools,
        mapped_bytes=pools,
        cached_bytes=pools + file_bytes,
        active_file_bytes=file_bytes // 3,
        inactive_file_bytes=file_bytes - file_bytes // 3,
        slab_reclaimable_bytes=0,
        mlocked_bytes=0,
        unevictable_bytes=0,
        swap_total_bytes=0,
        swap_free_bytes=0,
        hugetlb_bytes=0,
        oom_kill_count=0,
        swap_in_pages=0,
        swap_out_pages=0,
        scan_direct_pages=0,
        alloc_stall_count=0,
        pressure=Pressure(
            some_avg10_percent=pressure_percent,
            some_avg60_percent=pressure_percent,
            full_avg10_percent=pressure_percent / 2,
            full_avg60_percent=pressure_percent / 2,
        ),
        reserve_bytes=int(_REAL_RESERVE_BYTES * scale()),
    )


def simulated_numa(ranks: list[RankUse], host: Host) -> tuple[NumaNode, ...]:
    """Two equal nodes; each rank's pools lie on its GPU's node except for its far share."""
    pools = dict.fromkeys(range(_NODES), 0)
    for rank in ranks:
        far = int(rank.shmem_bytes * rank.far_percent / 100)
        pools[numa_node(rank.tp)] += rank.shmem_bytes - far
        pools[1 - numa_node(rank.tp)] += far
    return tuple(_node(node, pools[node], host) for node in range(_NODES))


def _node(node: int, pools: int, host: Host) -> NumaNode:
    def half(value: int | None) -> int:
        return (value or 0) // _NODES

    total = half(host.total_bytes)
    file_bytes = half((host.active_file_bytes or 0) + (host.inactive_file_bytes or 0))
    others = half((host.total_bytes or 0) - (host.available_bytes or 0) - (host.shmem_bytes or 0))
    first_cpu = 64 * node
    return NumaNode(
        node=node,
        source=SOURCE,
        total_bytes=total,
        free_bytes=max(0, total - pools - others - file_bytes),
        active_file_bytes=half(host.active_file_bytes),
        inactive_file_bytes=half(host.inactive_file_bytes),
        slab_reclaimable_bytes=0,
        shmem_bytes=pools,
        anon_bytes=half(host.anon_bytes),
        watermark_low_bytes=int(total * 0.0005),
        numa_miss_pages=0,
        numa_foreign_pages=0,
        cpus=f"{first_cpu}-{first_cpu + 63}",
        distances=tuple((other, 10 if other == node else 21) for other in range(_NODES)),
    )


def simulated_placement(rank: RankUse, at_unix_seconds: float) -> Placement:
    """256 sampled pages of all pools of a rank (start address 0)."""
    near = numa_node(rank.tp)
    far_pages = round(256 * rank.far_percent / 100)
    pages = {near: 256 - far_pages, 1 - near: far_pages}
    return Placement(
        pid=rank.pid,
        start_address=0,
        sampled_pages=256,
        pages_by_node=tuple((node, count) for node, count in sorted(pages.items()) if count),
        at_unix_seconds=at_unix_seconds,
        source=SOURCE,
    )
