"""Where pages lay, from copies of `/proc/PID/numa_maps` that somebody saved (proc_pid_numa_maps(5)).

Reading that file on a live node walks all pages of a rank and stalls it for seconds: here only copies are read.
"""

from __future__ import annotations

import os
import re

from collectors.procfs import read_file
from ranktop.sample import Placement, Processes

_MAX_BYTES = 16 << 20
_NODE = re.compile(rb"\bN(\d{1,4})=(\d{1,15})\b")
_SHARED = (b"file=/dev/zero", b"file=/anon_hugepage", b"memfd:", b"sglang")
_LEAST_PAGES = 256


def saved_placements(proc_root: str, processes: Processes) -> dict[int, tuple[Placement, ...]]:
    """Placements by pid, of ranks of which a copy is there. Empty for a live `/proc`."""
    if is_live(proc_root):
        return {}
    found: dict[int, tuple[Placement, ...]] = {}
    for rank in processes.ranks:
        try:
            placements = parse_numa_maps(read_file(f"{proc_root}/{rank.pid}/numa_maps", _MAX_BYTES), rank.pid)
        except OSError:
            continue
        if placements:
            found[rank.pid] = placements
    return found


def parse_numa_maps(raw: bytes, pid: int) -> tuple[Placement, ...]:
    """Shared mappings with their pages by node; every page counts as sampled."""
    found: list[Placement] = []
    for line in raw.split(b"\n"):
        address = line.partition(b" ")[0]
        pages = tuple((int(node), int(count)) for node, count in _NODE.findall(line))
        total = sum(count for _, count in pages)
        if total < _LEAST_PAGES or not any(mark in line for mark in _SHARED):
            continue
        try:
            found.append(Placement(pid, int(address, 16), total, pages))
        except ValueError:
            continue
    return tuple(found)


def is_live(proc_root: str) -> bool:
    """Whether the tree is a mounted procfs and no copy of one."""
    try:
        return os.stat(proc_root).st_dev == os.stat("/proc").st_dev or os.path.exists(f"{proc_root}/self/stat")
    except OSError:
        return False
