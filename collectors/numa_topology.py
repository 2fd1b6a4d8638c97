"""NUMA nodes, their CPUs and distances: from sysfs, held against libnuma where that is installed.

Ids can be sparse, nodes can lack memory or CPUs (Documentation/admin-guide/mm/numaperf.rst of Linux); a `distance`
file has one column for every online node in ascending order, not one for every id.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from collectors.move_pages import syscall_number

Distances = dict[tuple[int, int], int]
"""SLIT distance from a node to a node; 10 is itself."""


class Topology(NamedTuple):
    """Online nodes in ascending order. `cpus` is a list such as `0-7,16`, empty for a node without, None if untold."""

    nodes: tuple[int, ...]
    cpus: dict[int, str | None]
    distances: Distances


def parse_id_list(text: str) -> tuple[int, ...]:
    """`0,8,250-255` as numbers; what is no such list is empty."""
    found: list[int] = []
    for part in text.strip().split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            return ()
        found.extend(range(int(first), min(int(last or first), int(first) + 4096) + 1))
    return tuple(found)


def read_topology(sys_root: str) -> Topology:
    """The topology by sysfs; without nodes on a kernel without NUMA."""
    folder = f"{sys_root}/devices/system/node"
    nodes = parse_id_list(_text(f"{folder}/online") or "") or _node_folders(folder)
    cpus = {node: _text(f"{folder}/node{node}/cpulist") for node in nodes}
    # An offline node can have a column still, and is then in one of the longer lists.
    columns_of = [nodes, *(parse_id_list(_text(f"{folder}/{name}") or "") for name in ("has_memory", "possible"))]
    distances: Distances = {}
    for node in nodes:
        columns = (_text(f"{folder}/node{node}/distance") or "").split()
        ids = next((ids for ids in columns_of if len(ids) == len(columns)), ())
        if all(column.isdecimal() for column in columns):
            distances |= {(node, other): int(column) for other, column in zip(ids, columns, strict=False)}
    return Topology(nodes, cpus, distances)


def disagreement(topology: Topology, library: str, distances: Distances) -> str | None:
    """What a library says otherwise than sysfs, in one line. Broken firmware tables show this way."""
    for pair, distance in topology.distances.items():
        other = distances.get(pair)
        if other is not None and other != distance:
            return f"node {pair[0]} to {pair[1]}: sysfs says {distance}, {library} says {other}"
    return None


def library_distances(nodes: tuple[int, ...]) -> tuple[str, Distances] | None:
    """Distances by the `numa` package, else by libnuma through ctypes. None where neither is there or allowed."""
    if not _may_ask_policy():
        return None
    for name, get in (("the numa package", _numa_package), ("libnuma", _libnuma)):
        distance = get()
        if distance is not None:
            return name, {(a, b): distance(a, b) for a in nodes for b in nodes}
    return None


def _may_ask_policy() -> bool:
    """libnuma prints on stderr, which is the screen, where get_mempolicy is refused: then it is not loaded."""
    number = syscall_number("get_mempolicy")
    if number is None:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(
        number, None, None, ctypes.c_ulong(0), None, ctypes.c_ulong(0)
    ) == 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS)


def _numa_package() -> Callable[[int, int], int] | None:
    """`numa` 1.4.6. Another distribution, py-libnuma, has the same module name and another interface."""
    try:
        numa: Any = importlib.import_module("numa")
    except (ImportError, AttributeError, OSError):
        # py-libnuma without libnuma ends in an AttributeError at import.
        return None
    return numa.get_distance if hasattr(numa, "available") and numa.available() else None


def _libnuma() -> Callable[[int, int], int] | None:
    try:
        library = ctypes.CDLL("libnuma.so.1")
        return library.numa_distance if library.numa_available() >= 0 else None
    except (OSError, AttributeError):
        return None


def _node_folders(folder: str) -> tuple[int, ...]:
    try:
        names = os.listdir(folder)
    except OSError:
        return ()
    return tuple(sorted(int(name[4:]) for name in names if name.startswith("node") and name[4:].isdigit()))


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(1 << 16).strip()
    except OSError:
        return None
