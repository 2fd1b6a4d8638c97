"""Readings of the host and of cgroups that are no lines, but over which rules look back.

They live in the same history as the lines, under keys of their own: (cgroup path or server, "", name).
"""

from __future__ import annotations

from ranktop.reconcile.headrooms import group_uses, node_headroom_bytes
from ranktop.reconcile.history import LineKey
from ranktop.sample import Cgroup, Host, Pressure, Sample

OOM_KILLS = "count.oom_kill"
OOMS = "count.oom"
AT_LIMIT = "count.max"
SWAP_OUT = "count.swap_out_bytes"
PINS = "pins.net_bytes"
PSI_SOME = "psi.some_percent"
PSI_FULL = "psi.full_percent"
WORKING_SET = "cgroup.working_set_bytes"
NODE_HEADROOM = "numa.headroom_bytes"
RESIDENT_POOLS = "pools.resident_bytes"
DISK_FREE = "l3.disk_free_bytes"


def counter_values(sample: Sample) -> dict[LineKey, float]:
    """What this sample tells; a value that is not told is left out."""
    told: dict[LineKey, float | None] = {}
    if sample.host is not None:
        told |= _host(sample.host)
    for cgroup in {cgroup.path: cgroup for cgroup in sample.cgroups.values()}.values():
        told |= _cgroup(cgroup)
    for use in group_uses(sample) if sample.cgroups else ():
        told[use.limit_path, "", WORKING_SET] = use.working_set_bytes
    for node in sample.numa or ():
        told[str(node.node), "", NODE_HEADROOM] = node_headroom_bytes(node)
    for server, resident in resident_pools(sample).items():
        told[server, "", RESIDENT_POOLS] = resident
    for server, disk in sample.storage_disks.items():
        told[server, "", DISK_FREE] = disk.free_bytes
    return {key: float(value) for key, value in told.items() if value is not None}


def resident_pools(sample: Sample) -> dict[str, int]:
    """Resident shared memory of every server's ranks: what host pools populate (RssShmem and HugetlbPages)."""
    found: dict[str, int] = {}
    for rank in sample.processes.ranks if sample.processes else ():
        if rank.rss_shmem_bytes is not None:
            found[rank.server] = found.get(rank.server, 0) + rank.rss_shmem_bytes + (rank.hugetlb_bytes or 0)
    return found


def outstanding_pins_bytes(host: Host) -> int | None:
    """Pages under FOLL_PIN now, of anybody on this host. None where the kernel does not count them."""
    if host.foll_pin_acquired_pages is None or host.foll_pin_released_pages is None:
        return None
    return (host.foll_pin_acquired_pages - host.foll_pin_released_pages) * host.page_size_bytes


def counts_of(host: Host) -> str:
    """Whose counters these are: a simulated host's go on from nothing of the machine's that it stands on."""
    return "" if host.source == "measured" else host.source


def _host(host: Host) -> dict[LineKey, float | None]:
    swapped = host.swap_out_pages
    return {
        (counts_of(host), "", OOM_KILLS): host.oom_kill_count,
        (counts_of(host), "", SWAP_OUT): swapped * host.page_size_bytes if swapped is not None else None,
        ("", "", PINS): outstanding_pins_bytes(host),
        **_pressure("", host.pressure),
    }


def _cgroup(cgroup: Cgroup) -> dict[LineKey, float | None]:
    return {
        (cgroup.path, "", OOM_KILLS): cgroup.oom_kill_count,
        (cgroup.path, "", OOMS): cgroup.oom_count,
        (cgroup.path, "", AT_LIMIT): cgroup.max_count,
        **_pressure(cgroup.path, cgroup.pressure),
    }


def _pressure(owner: str, pressure: Pressure | None) -> dict[LineKey, float | None]:
    if pressure is None:
        return {}
    return {
        (owner, "", PSI_SOME): pressure.some_avg10_percent,
        (owner, "", PSI_FULL): pressure.full_avg10_percent,
    }
