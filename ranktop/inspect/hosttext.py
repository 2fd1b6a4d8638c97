"""Host memory as people paste it: `free`, `numactl -H`, a lone meminfo (procps-ng free(1), numactl(8))."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from ranktop.sample import Host, NumaNode

_PREFIXES = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([KMGTB]i?)?\Z", re.IGNORECASE)
_FREE_UNIT = re.compile(r"\bfree\s+(?:-\w+\s+)*-\w*([bkmg])\w*|\bfree\s+.*--(bytes|kibi|mebi|gibi)", re.IGNORECASE)
_COLUMNS = {"total": "total_bytes", "free": "free_bytes", "shared": "shmem_bytes", "available": "available_bytes"}
_OPTION_UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_LARGEST_GIB = 1 << 16
"""More than that many GiB is no host: a plain number that large is in kibibytes."""


def free_tables(lines: Sequence[str]) -> list[Host]:
    """Every `free` table in the order of the text, in whole units that are rounded down.

    The unit is that of the numbers, of the command before it, or inferred.
    """
    found: list[Host] = []
    for index, line in enumerate(lines[:-1]):
        words = line.split() if "total" in line else []
        if words[:2] != ["total", "used"] or "free" not in words:
            continue
        values = lines[index + 1].split()
        if values[:1] != ["Mem:"] or len(values) < 3:
            continue
        unit = _unit_before(lines, index)
        table = _table(words, values[1:], unit)
        if table is not None:
            found.append(table)
    return found


def _unit_before(lines: Sequence[str], index: int) -> int | None:
    for line in reversed(lines[max(0, index - 2) : index]):
        match = _FREE_UNIT.search(line)
        if match is not None:
            return _OPTION_UNITS[(match[1] or match[2])[0].lower()]
    return None


def _table(columns: Sequence[str], values: Sequence[str], unit: int | None) -> Host | None:
    parsed = [_NUMBER.match(value) for value in values]
    if any(match is None for match in parsed):
        return None
    numbers = [match for match in parsed if match is not None]
    if unit is None:
        plain = int(float(numbers[0][1]))
        unit = (1 << 30) if plain < _LARGEST_GIB else 1 << 10
    fields: dict[str, int] = {}
    for column, match in zip(columns, numbers, strict=False):
        if column in _COLUMNS:
            factor = _PREFIXES[match[2][0].upper()] if match[2] else unit
            fields[_COLUMNS[column]] = int(float(match[1]) * factor)
            unit = factor if match[2] else unit
    return replace(Host(resolution_bytes=unit), **fields)


_NODE_SIZE = re.compile(r"node (\d+) (size|free): (\d+) MB\Z")
_NODE_CPUS = re.compile(r"node (\d+) cpus:(.*)\Z")
_DISTANCE_ROW = re.compile(r"\s*(\d+):((?:\s+\d+)+)\s*\Z")


def numactl_nodes(lines: Sequence[str]) -> tuple[NumaNode, ...]:
    """The nodes of `numactl -H`; its MB are 2^20. Empty without one."""
    sizes: dict[int, dict[str, int]] = {}
    cpus: dict[int, str] = {}
    rows: dict[int, list[int]] = {}
    for line in lines:
        text = line.strip()
        if not sizes and not text.startswith("node "):
            continue
        if match := _NODE_SIZE.match(text):
            sizes.setdefault(int(match[1]), {})[match[2]] = int(match[3]) << 20
        elif match := _NODE_CPUS.match(text):
            cpus[int(match[1])] = match[2].strip().replace(" ", ",")
        elif sizes and (match := _DISTANCE_ROW.match(line)):
            rows[int(match[1])] = [int(number) for number in match[2].split()]
    nodes = sorted(sizes)
    return tuple(
        NumaNode(
            node,
            total_bytes=sizes[node].get("size"),
            free_bytes=sizes[node].get("free"),
            cpus=cpus.get(node),
            distances=tuple(zip(nodes, rows.get(node, ()), strict=False)),
        )
        for node in nodes
    )
