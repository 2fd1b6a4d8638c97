"""Memory of every NUMA node, and how far the nodes are from each other."""

from __future__ import annotations

import os

from collectors.hugepages import HugePageFiles
from collectors.numa_topology import Topology, disagreement, library_distances, read_topology
from collectors.procfs import KeptFile, kib_value, number_after, read_file
from ranktop.sample import HugePages, NoData, NumaNode, Processes, SourceError

_RARELY = 60
"""Topology and watermarks change with hotplug and sysctl only; zoneinfo is long on machines of many CPUs."""


class NumaNodesCollector:
    """`/sys/devices/system/node`: meminfo, vmstat, numastat, huge pages, CPUs and distances of every online node."""

    name = "numa"
    part = "numa"
    server = None
    period_seconds = 1.0

    def __init__(self, sys_root: str | os.PathLike[str] = "/sys", proc_root: str | os.PathLike[str] = "/proc") -> None:
        self._sys = os.fspath(sys_root)
        self._proc = os.fspath(proc_root)
        self._topology = Topology((), {}, {})
        self._note: str | None = None
        self._watermarks: dict[int, int] = {}
        self._files: dict[int, _NodeFiles] = {}
        self._reads = 0

    def read(self, processes: Processes | None, now: float) -> tuple[NumaNode, ...]:
        if self._reads % _RARELY == 0:
            self._look_around()
        self._reads += 1
        if not self._topology.nodes:
            raise NoData(f"{self._sys}/devices/system/node is not there (a kernel without NUMA)", "absent")
        try:
            return tuple(self._node(node) for node in self._topology.nodes)
        except OSError as error:
            # A node went offline: look at all of them anew.
            self._reads = 0
            raise SourceError(f"{error.filename or self._sys}: {error.strerror} (read again next time)") from error

    def _look_around(self) -> None:
        self._topology = read_topology(self._sys)
        folder = f"{self._sys}/devices/system/node"
        self._files = {node: _NodeFiles(f"{folder}/node{node}") for node in self._topology.nodes}
        try:
            self._watermarks = parse_watermarks(read_file(f"{self._proc}/zoneinfo", 8 << 20))
        except OSError:
            self._watermarks = {}
        if self._sys == "/sys" and len(self._topology.nodes) > 1 and self._reads == 0:
            told = library_distances(self._topology.nodes)
            self._note = disagreement(self._topology, *told) if told is not None else None

    def _node(self, node: int) -> NumaNode:
        files = self._files[node]
        low_pages = self._watermarks.get(node)
        distances = self._topology.distances
        return parse_node(
            node,
            files.read("meminfo"),
            files.read("vmstat"),
            files.read("numastat"),
            cpus=self._topology.cpus.get(node),
            distances=tuple(
                (other, distances[node, other]) for other in self._topology.nodes if (node, other) in distances
            ),
            watermark_low_bytes=low_pages * os.sysconf("SC_PAGE_SIZE") if low_pages is not None else None,
            hugepages=files.hugepages.read(),
            note=self._note,
        )


class _NodeFiles:
    """The files of one node, kept open; a file that is absent is empty (memory-only nodes, old kernels)."""

    def __init__(self, folder: str) -> None:
        self.hugepages = HugePageFiles(f"{folder}/hugepages")
        self._open: dict[str, KeptFile] = {}
        for name in ("meminfo", "vmstat", "numastat"):
            try:
                self._open[name] = KeptFile(f"{folder}/{name}")
            except FileNotFoundError:
                continue

    def read(self, name: str) -> bytes:
        file = self._open.get(name)
        return file.read() if file is not None else b""


def parse_node(
    node: int,
    meminfo: bytes,
    vmstat: bytes = b"",
    numastat: bytes = b"",
    *,
    cpus: str | None = None,
    distances: tuple[tuple[int, int], ...] = (),
    watermark_low_bytes: int | None = None,
    hugepages: tuple[HugePages, ...] = (),
    note: str | None = None,
) -> NumaNode:
    """One node. Lines of its meminfo begin with `Node 0 `; a line that is absent is None."""
    prefix = b"Node %d " % node

    def memory(key: bytes) -> int | None:
        return kib_value(meminfo, prefix + key)

    return NumaNode(
        node=node,
        total_bytes=memory(b"MemTotal:"),
        free_bytes=memory(b"MemFree:"),
        active_file_bytes=memory(b"Active(file):"),
        inactive_file_bytes=memory(b"Inactive(file):"),
        slab_reclaimable_bytes=memory(b"SReclaimable:"),
        shmem_bytes=memory(b"Shmem:"),
        anon_bytes=memory(b"AnonPages:"),
        watermark_low_bytes=watermark_low_bytes,
        foll_pin_acquired_pages=number_after(vmstat, b"nr_foll_pin_acquired "),
        foll_pin_released_pages=number_after(vmstat, b"nr_foll_pin_released "),
        numa_miss_pages=number_after(numastat, b"numa_miss "),
        numa_foreign_pages=number_after(numastat, b"numa_foreign "),
        cpus=cpus,
        distances=distances,
        hugepages=hugepages,
        note=note,
    )


def parse_watermarks(zoneinfo: bytes) -> dict[int, int]:
    """The low watermarks of `/proc/zoneinfo` in pages, summed over the zones of every node."""
    found: dict[int, int] = {}
    node: int | None = None
    for line in zoneinfo.split(b"\n"):
        if line.startswith(b"Node "):
            digits = line[5:].split(b",", 1)[0]
            node = int(digits) if digits.isdigit() else None
        elif node is not None and line.startswith(b"        low"):
            words = line.split()
            if len(words) == 2 and words[0] == b"low" and words[1].isdigit():
                found[node] = found.get(node, 0) + int(words[1])
    return found
