"""Memory of the host: meminfo, vmstat, memory pressure and reserved huge pages."""

from __future__ import annotations

import os
import re

from collectors.hugepages import HugePageFiles
from collectors.pressure import parse_pressure
from collectors.procfs import KeptFile, kib_value, number_after
from ranktop.sample import Host, HugePages, Pressure, Processes, SourceError

_ALLOC_STALLS = re.compile(rb"^allocstall\w* (\d+)$", re.M)


class HostMemCollector:
    """`/proc/{meminfo,vmstat,pressure/memory}` and `/sys/kernel/mm/hugepages`, kept open."""

    name = "hostmem"
    part = "host"
    server = None
    period_seconds = 1.0

    def __init__(self, proc_root: str | os.PathLike[str] = "/proc", sys_root: str | os.PathLike[str] = "/sys") -> None:
        self._proc = os.fspath(proc_root)
        self._sys = os.fspath(sys_root)
        self._files: dict[str, KeptFile | None] = {}
        self._hugepages: HugePageFiles | None = None

    def read(self, processes: Processes | None, now: float) -> Host:
        if self._hugepages is None:
            self._hugepages = HugePageFiles(f"{self._sys}/kernel/mm/hugepages")
        meminfo = self._read("meminfo")
        if not meminfo:
            raise SourceError(f"{self._proc}/meminfo could not be read (is /proc mounted there?)", "unreadable")
        return parse_host(
            meminfo,
            self._read("vmstat"),
            parse_pressure(self._read("pressure/memory")),
            self._hugepages.read(),
            numa_balancing=self._read("sys/kernel/numa_balancing"),
        )

    def _read(self, name: str) -> bytes:
        """The file, or nothing: pressure is absent with psi=0, and a kernel without NUMA has no numa_balancing."""
        try:
            if name not in self._files:
                self._files[name] = KeptFile(f"{self._proc}/{name}")
            file = self._files[name]
            return file.read() if file is not None else b""
        except OSError:
            self._files[name] = None
            return b""


def parse_host(
    meminfo: bytes,
    vmstat: bytes = b"",
    pressure: Pressure | None = None,
    hugepages: tuple[HugePages, ...] = (),
    numa_balancing: bytes = b"",
) -> Host:
    """What the files say; a line that is absent or carries another unit than kB is None."""
    stalls = _ALLOC_STALLS.findall(vmstat)
    return Host(
        total_bytes=kib_value(meminfo, b"MemTotal:"),
        available_bytes=kib_value(meminfo, b"MemAvailable:"),
        free_bytes=kib_value(meminfo, b"MemFree:"),
        anon_bytes=kib_value(meminfo, b"AnonPages:"),
        shmem_bytes=kib_value(meminfo, b"Shmem:"),
        mapped_bytes=kib_value(meminfo, b"Mapped:"),
        cached_bytes=kib_value(meminfo, b"Cached:"),
        active_file_bytes=kib_value(meminfo, b"Active(file):"),
        inactive_file_bytes=kib_value(meminfo, b"Inactive(file):"),
        slab_reclaimable_bytes=kib_value(meminfo, b"SReclaimable:"),
        mlocked_bytes=kib_value(meminfo, b"Mlocked:"),
        unevictable_bytes=kib_value(meminfo, b"Unevictable:"),
        swap_total_bytes=kib_value(meminfo, b"SwapTotal:"),
        swap_free_bytes=kib_value(meminfo, b"SwapFree:"),
        hugetlb_bytes=kib_value(meminfo, b"Hugetlb:"),
        hugepages=hugepages,
        oom_kill_count=number_after(vmstat, b"oom_kill "),
        swap_in_pages=number_after(vmstat, b"pswpin "),
        swap_out_pages=number_after(vmstat, b"pswpout "),
        scan_direct_pages=number_after(vmstat, b"pgscan_direct "),
        alloc_stall_count=sum(map(int, stalls)) if stalls else None,
        refault_file_pages=number_after(vmstat, b"workingset_refault_file "),
        foll_pin_acquired_pages=number_after(vmstat, b"nr_foll_pin_acquired "),
        foll_pin_released_pages=number_after(vmstat, b"nr_foll_pin_released "),
        page_size_bytes=os.sysconf("SC_PAGE_SIZE"),
        pressure=pressure,
        numa_balancing=int(balancing) if (balancing := numa_balancing.strip()).isdigit() else None,
    )
