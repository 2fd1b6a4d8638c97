"""The host and the two NUMA nodes that a laptop does not have: 1511 GB at the demo's scale.

It is as much smaller as the pools are, so that pools, total and the 10 GiB reserve stand in their real proportions;
what is resident is what the ranks really hold.
"""

from __future__ import annotations

import math

from ranktop.demo.cpus import cpu_list, node_cpus
from ranktop.demo.gpus import GIB, NODES, SOURCE, RankUse
from ranktop.demo.scenarios import HostScript
from ranktop.demo.sizes import scale
from ranktop.sample import Cgroup, Host, NumaNode, Placement, Pressure

_REAL_RESERVE_BYTES = 10 * GIB
_REAL_FILE_GB = 60.0
_POD_UID = "00000000-0000-4000-8000-000000000007"
POD = f"/kubepods.slice/kubepods-pod{_POD_UID.replace('-', '_')}.slice"


def simulated_host(ranks: list[RankUse], script: HostScript, seconds: float, oom_kills: int = 0) -> Host:
    """The scaled host, `seconds` after ready (0 before)."""
    late = max(0.0, seconds - script.after_seconds)
    pressure = script.pressure_percent if late else 0.0
    total = _scaled(script.total_gb)
    pools = sum(rank.shmem_bytes for rank in ranks)
    used = int(_scaled(script.other_gb) * (1 + 0.01 * math.sin(seconds / 17)))
    used += _scaled(script.growth_gb_per_minute * late / 60)
    available = max(0, total - pools - used)
    file_bytes = min(_scaled(_REAL_FILE_GB), available // 2)
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
        oom_kill_count=oom_kills,
        swap_in_pages=0,
        swap_out_pages=0,
        scan_direct_pages=0,
        alloc_stall_count=0,
        pressure=Pressure(
            some_avg10_percent=pressure,
            some_avg60_percent=pressure,
            full_avg10_percent=pressure / 2,
            full_avg60_percent=pressure / 2,
        ),
        reserve_bytes=int(_REAL_RESERVE_BYTES * scale()),
    )


def simulated_cgroup(ranks: list[RankUse], script: HostScript, host: Host, oom_kills: int) -> Cgroup | None:
    """The pod that all ranks run in; None when the scenario has none."""
    if script.pod_limit_gb is None:
        return None
    anon = host.anon_bytes or 0
    shmem = sum(rank.shmem_bytes for rank in ranks)
    limit = _scaled(script.pod_limit_gb)
    file_bytes = max(0, min((host.active_file_bytes or 0) + (host.inactive_file_bytes or 0), limit - anon - shmem))
    return Cgroup(
        path=POD,
        version=2,
        current_bytes=min(limit, anon + shmem + file_bytes),
        limit_bytes=limit,
        limit_path=POD,
        active_file_bytes=file_bytes // 3,
        inactive_file_bytes=file_bytes - file_bytes // 3,
        slab_reclaimable_bytes=0,
        shmem_bytes=shmem,
        anon_bytes=anon,
        oom_count=oom_kills,
        oom_kill_count=oom_kills,
        max_count=oom_kills,
        high_count=0,
        oom_group=False,
        pressure=host.pressure,
        pod_uid=_POD_UID,
    )


def simulated_numa(ranks: list[RankUse], script: HostScript, host: Host) -> tuple[NumaNode, ...]:
    """Two equal nodes; each rank's pools lie on its GPU's node except for its far share."""
    pools = dict.fromkeys(range(NODES), 0)
    for rank in ranks:
        far = int(rank.shmem_bytes * rank.far_percent / 100)
        pools[rank.node] += rank.shmem_bytes - far
        pools[1 - rank.node] += far
    others = (host.total_bytes or 0) - (host.available_bytes or 0) - (host.shmem_bytes or 0)
    even = dict.fromkeys(range(NODES), others // NODES)
    alone = {node: others if node == script.other_on_node else 0 for node in range(NODES)}
    held = even if script.other_on_node is None else alone
    return tuple(_node(node, pools[node], held[node], host) for node in range(NODES))


def _node(node: int, pools: int, others: int, host: Host) -> NumaNode:
    def half(value: int | None) -> int:
        return (value or 0) // NODES

    total = half(host.total_bytes)
    file_bytes = half((host.active_file_bytes or 0) + (host.inactive_file_bytes or 0))
    return NumaNode(
        node=node,
        source=SOURCE,
        total_bytes=total,
        free_bytes=max(0, total - pools - others - file_bytes),
        active_file_bytes=half(host.active_file_bytes),
        inactive_file_bytes=half(host.inactive_file_bytes),
        slab_reclaimable_bytes=0,
        shmem_bytes=pools,
        anon_bytes=others * 3 // 4,
        watermark_low_bytes=int(total * 0.0005),
        numa_miss_pages=0,
        numa_foreign_pages=0,
        cpus=cpu_list(node_cpus(node)),
        distances=tuple((other, 10 if other == node else 21) for other in range(NODES)),
    )


def simulated_placement(rank: RankUse, at_unix_seconds: float) -> Placement:
    """256 sampled pages of all pools of a rank (start address 0)."""
    near = rank.node
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


def _scaled(real_gb: float) -> int:
    return int(real_gb * 1e9 * scale())
