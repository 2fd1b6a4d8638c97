"""The GPUs that a laptop does not have, one a rank, at their real size."""

from __future__ import annotations

import math

from msgspec import Struct

from ranktop.demo.launch import DEVICE_TOKENS, PAGE_TOKENS
from ranktop.demo.sizes import PoolSizes
from ranktop.sample import Gpu, GpuProcess, Gpus

GIB = 1 << 30
SOURCE = "simulated"
NODES = 2
_GPUS_A_DOMAIN = 8
GRAPH_GIB = 1.86
_CONTEXT_GIB = 1.07
_REST_GIB = 2.4
_TOTAL_BYTES = 143771 << 20
_RESERVED_BYTES = 725 << 20
_ORPHAN_BYTES = 30 * GIB


class RankUse(Struct, frozen=True):
    """What one live rank holds. `shmem_bytes` is RssShmem of its /proc/PID/status."""

    tp: int
    pid: int
    shmem_bytes: int
    node: int
    """The NUMA node of its GPU."""
    far_percent: float = 0.0
    orphan: bool = False
    """A rank of an earlier server that is still there, beside the GPU's own."""


def numa_node(tp: int, gpus: int) -> int:
    """The node of a rank's GPU: of eight, 0 to 3 on node 0, 4 to 7 on node 1."""
    return tp * NODES // gpus


def weight_gib(tp: int) -> float:
    """`weight_memory_usage_gb` of a rank."""
    return round(91.4 + 0.011 * tp, 3)


def kv_gib(sizes: PoolSizes) -> float:
    """`kv_cache_memory_usage_gb`: the L1 pool has one page more than its tokens."""
    return (DEVICE_TOKENS + PAGE_TOKENS) * sizes.device_bytes_per_token / GIB


def startup_available_gib(tp: int, sizes: PoolSizes) -> float:
    """Free HBM after graph capture."""
    free = (_TOTAL_BYTES - _RESERVED_BYTES) / GIB
    return round(free - _CONTEXT_GIB - weight_gib(tp) - kv_gib(sizes) - GRAPH_GIB, 2)


def simulated_gpus(count: int, ranks: list[RankUse], sizes: PoolSizes, seconds: float, load: float) -> Gpus:
    """All GPUs after `seconds` of node time at `load` (0 idle, 1 busy). A GPU without its rank is empty."""
    by_tp = {rank.tp: rank for rank in ranks if not rank.orphan}
    orphans = {rank.tp: rank.pid for rank in ranks if rank.orphan}
    return Gpus(
        source=SOURCE,
        driver_version="simulated",
        gpus=tuple(
            _gpu(tp, numa_node(tp, count), by_tp.get(tp), orphans.get(tp), sizes, seconds, load) for tp in range(count)
        ),
    )


def _gpu(
    tp: int, node: int, rank: RankUse | None, orphan_pid: int | None, sizes: PoolSizes, seconds: float, load: float
) -> Gpu:
    wave = math.sin(seconds / 11 + tp)
    usable = _TOTAL_BYTES - _RESERVED_BYTES
    held = 0
    if rank is not None:
        moving = 0.02 * wave + 0.05 * load
        held = int((_CONTEXT_GIB + weight_gib(tp) + kv_gib(sizes) + GRAPH_GIB + _REST_GIB + moving) * GIB)
        held -= held % (2 << 20)
    processes = [] if rank is None else [GpuProcess(rank.pid, held)]
    if orphan_pid is not None:
        processes.append(GpuProcess(orphan_pid, _ORPHAN_BYTES))
        held += _ORPHAN_BYTES
    busy = load if rank is not None else 0.0
    return Gpu(
        index=tp,
        uuid=f"GPU-00000000-0000-4000-8000-{tp:012d}",
        name="NVIDIA H200 (simulated)",
        pci_bus_id=f"{tp // _GPUS_A_DOMAIN:08X}:{0x18 + 0x11 * (tp % _GPUS_A_DOMAIN):02X}:00.0",
        numa_node=node,
        total_bytes=_TOTAL_BYTES,
        reserved_bytes=_RESERVED_BYTES,
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
        processes=tuple(processes),
    )
