"""The host and its NUMA nodes as the kernel reports them. Bytes are ints; `None` means the file did not say."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from ranktop.sample.fields import counter, gauge, label


class Pressure(Struct, frozen=True, array_like=True):
    """One pressure-stall file, for example `/proc/pressure/memory` (Documentation/accounting/psi.rst)."""

    some_avg10_percent: Annotated[float | None, gauge("some10", "percent", 6, "time some task stalled, 10 s mean")] = (
        None
    )
    some_avg60_percent: Annotated[float | None, gauge("some60", "percent", 6, "time some task stalled, 60 s mean")] = (
        None
    )
    full_avg10_percent: Annotated[float | None, gauge("full10", "percent", 6, "time every task stalled, 10 s mean")] = (
        None
    )
    full_avg60_percent: Annotated[float | None, gauge("full60", "percent", 6, "time every task stalled, 60 s mean")] = (
        None
    )
    some_total_microseconds: Annotated[int | None, counter("some", "microseconds", 12, "time some task stalled")] = None
    full_total_microseconds: Annotated[int | None, counter("full", "microseconds", 12, "time every task stalled")] = (
        None
    )


class HugePages(Struct, frozen=True, array_like=True):
    """One huge page size, of the host or of one NUMA node (`hugepages-*kB/`)."""

    page_size_bytes: Annotated[int, label("page", 8, "size of one huge page")]
    total_pages: Annotated[int | None, gauge("total", "pages", 8, "huge pages reserved")] = None
    free_pages: Annotated[int | None, gauge("free", "pages", 8, "huge pages not in use")] = None
    reserved_pages: Annotated[int | None, gauge("rsvd", "pages", 8, "promised to mappings, not yet faulted in")] = None


class Host(Struct, frozen=True, array_like=True):
    """`/proc/meminfo`, `/proc/vmstat` and `/proc/pressure/memory` at one instant."""

    source: str = "measured"
    total_bytes: Annotated[int | None, gauge("total", "bytes", 9, "MemTotal")] = None
    available_bytes: Annotated[int | None, gauge("avail", "bytes", 9, "MemAvailable: already without shmem")] = None
    free_bytes: Annotated[int | None, gauge("free", "bytes", 9, "MemFree")] = None
    anon_bytes: Annotated[int | None, gauge("anon", "bytes", 9, "AnonPages")] = None
    shmem_bytes: Annotated[int | None, gauge("shmem", "bytes", 9, "Shmem: host pools count here")] = None
    mapped_bytes: Annotated[int | None, gauge("mapped", "bytes", 9, "Mapped")] = None
    cached_bytes: Annotated[int | None, gauge("cached", "bytes", 9, "Cached")] = None
    active_file_bytes: Annotated[int | None, gauge("actfile", "bytes", 9, "Active(file)")] = None
    inactive_file_bytes: Annotated[int | None, gauge("inafile", "bytes", 9, "Inactive(file)")] = None
    slab_reclaimable_bytes: Annotated[int | None, gauge("slab", "bytes", 9, "SReclaimable")] = None
    mlocked_bytes: Annotated[int | None, gauge("mlock", "bytes", 9, "Mlocked: CUDA pins do not count here")] = None
    unevictable_bytes: Annotated[int | None, gauge("unevict", "bytes", 9, "Unevictable")] = None
    swap_total_bytes: Annotated[int | None, gauge("swap", "bytes", 9, "SwapTotal")] = None
    swap_free_bytes: Annotated[int | None, gauge("swapfree", "bytes", 9, "SwapFree")] = None
    hugetlb_bytes: Annotated[int | None, gauge("hugetlb", "bytes", 9, "Hugetlb: all sizes, used or not")] = None
    hugepages: tuple[HugePages, ...] = ()
    oom_kill_count: Annotated[int | None, counter("oom", "count", 5, "oom_kill of vmstat")] = None
    swap_in_pages: Annotated[int | None, counter("swpin", "pages", 10, "pswpin of vmstat")] = None
    swap_out_pages: Annotated[int | None, counter("swpout", "pages", 10, "pswpout of vmstat")] = None
    scan_direct_pages: Annotated[int | None, counter("scand", "pages", 10, "pgscan_direct of vmstat")] = None
    alloc_stall_count: Annotated[int | None, counter("stall", "count", 10, "allocstall_* of vmstat, summed")] = None
    foll_pin_acquired_pages: Annotated[int | None, counter("pin+", "pages", 12, "nr_foll_pin_acquired")] = None
    foll_pin_released_pages: Annotated[int | None, counter("pin-", "pages", 12, "nr_foll_pin_released")] = None
    page_size_bytes: Annotated[int, label("page", 6, "size of a base page")] = 4096
    pressure: Pressure | None = None
    reserve_bytes: Annotated[int | None, gauge("reserve", "bytes", 9, "the start-up reserve scaled by a demo")] = None
    refault_file_pages: Annotated[int | None, counter("refault", "pages", 10, "workingset_refault_file of vmstat")] = (
        None
    )
    numa_balancing: Annotated[int | None, label("balance", 7, "kernel.numa_balancing: pinned pages never move")] = None
    resolution_bytes: Annotated[int | None, label("unit", 6, "whole units that a pasted table was rounded down to")] = (
        None
    )


class NumaNode(Struct, frozen=True, array_like=True):
    """One node of `/sys/devices/system/node`. Ids can be sparse, nodes can lack memory or CPUs."""

    node: Annotated[int, label("node", 4, "the kernel's node id")]
    source: str = "measured"
    total_bytes: Annotated[int | None, gauge("total", "bytes", 9, "MemTotal of the node")] = None
    free_bytes: Annotated[int | None, gauge("free", "bytes", 9, "MemFree of the node")] = None
    active_file_bytes: Annotated[int | None, gauge("actfile", "bytes", 9, "Active(file) of the node")] = None
    inactive_file_bytes: Annotated[int | None, gauge("inafile", "bytes", 9, "Inactive(file) of the node")] = None
    slab_reclaimable_bytes: Annotated[int | None, gauge("slab", "bytes", 9, "SReclaimable of the node")] = None
    shmem_bytes: Annotated[int | None, gauge("shmem", "bytes", 9, "Shmem of the node")] = None
    anon_bytes: Annotated[int | None, gauge("anon", "bytes", 9, "AnonPages of the node")] = None
    watermark_low_bytes: Annotated[int | None, gauge("low", "bytes", 9, "low watermarks of the node's zones")] = None
    foll_pin_acquired_pages: Annotated[int | None, counter("pin+", "pages", 12, "nr_foll_pin_acquired")] = None
    foll_pin_released_pages: Annotated[int | None, counter("pin-", "pages", 12, "nr_foll_pin_released")] = None
    numa_miss_pages: Annotated[int | None, counter("miss", "pages", 12, "allocated here, wanted elsewhere")] = None
    numa_foreign_pages: Annotated[int | None, counter("foreign", "pages", 12, "wanted here, allocated elsewhere")] = (
        None
    )
    cpus: Annotated[str | None, label("cpus", 16, "cpulist of the node, empty for a memory-only node")] = None
    distances: tuple[tuple[int, int], ...] = ()
    """(node, SLIT distance) for every online node, in the order of the kernel."""
    hugepages: tuple[HugePages, ...] = ()
    note: str | None = None
    """What libnuma says otherwise than sysfs, None while they agree or only sysfs was asked."""


class Cgroup(Struct, frozen=True, array_like=True):
    """The memory cgroup of one rank (v2 `memory.*`, v1 `memory/`), limits as the minimum over visible ancestors."""

    path: Annotated[str, label("cgroup", 24, "path inside the hierarchy")]
    version: Annotated[int, label("v", 2, "1 or 2")]
    current_bytes: Annotated[int | None, gauge("current", "bytes", 9, "memory.current / usage_in_bytes")] = None
    limit_bytes: Annotated[int | None, gauge("limit", "bytes", 9, "smallest limit over visible ancestors")] = None
    limit_path: Annotated[str | None, label("limited by", 24, "the ancestor that sets the limit")] = None
    peak_bytes: Annotated[int | None, gauge("peak", "bytes", 9, "memory.peak")] = None
    active_file_bytes: Annotated[int | None, gauge("actfile", "bytes", 9, "active_file of memory.stat")] = None
    inactive_file_bytes: Annotated[int | None, gauge("inafile", "bytes", 9, "inactive_file of memory.stat")] = None
    slab_reclaimable_bytes: Annotated[int | None, gauge("slab", "bytes", 9, "slab_reclaimable of memory.stat")] = None
    shmem_bytes: Annotated[int | None, gauge("shmem", "bytes", 9, "shmem of memory.stat")] = None
    anon_bytes: Annotated[int | None, gauge("anon", "bytes", 9, "anon of memory.stat")] = None
    oom_count: Annotated[int | None, counter("oom", "count", 5, "oom of memory.events")] = None
    oom_kill_count: Annotated[int | None, counter("kill", "count", 5, "oom_kill of memory.events")] = None
    max_count: Annotated[int | None, counter("max", "count", 7, "max of memory.events: page cache too")] = None
    high_count: Annotated[int | None, counter("high", "count", 7, "high of memory.events")] = None
    oom_group: Annotated[bool | None, label("group", 5, "memory.oom.group: the whole pod dies together")] = None
    pressure: Pressure | None = None
    pod_uid: Annotated[str | None, label("pod", 36, "pod UID in the path")] = None
    container_id: Annotated[str | None, label("container", 12, "container id in the path")] = None
    pod_namespace: Annotated[str | None, label("namespace", 16, "namespace of the pod, from its folder of logs")] = None
    pod_name: Annotated[str | None, label("pod name", 24, "name of the pod, from its folder of logs")] = None
