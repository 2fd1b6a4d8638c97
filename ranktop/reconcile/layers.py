"""LayerSplit as the ranks logged it (`Layer shard plan ...`, `layers/cp/utils.py` of SGLang 0.5.16 to 0.5.23)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from ranktop.sample import Event

MAX_LAYERS = 4096
"""A log that says more is not believed."""

_PART = re.compile(r"r(\d+):\[(\d+),(\d+)\)")


class LoggedRange(Struct, frozen=True):
    """One rank's shard plan: the half-open range of layers that it owns, and all ranks' ranges as it knows them."""

    rank: str
    cp_rank: int
    start: int
    end: int
    layers: int
    group_size: int
    partitions: tuple[tuple[int, int], ...]


def logged_range(event: Event) -> LoggedRange | None:
    """The shard plan of a `layer_plan` event, None when a number is missing from it."""
    fields = event.fields
    numbers = [fields.get(name) for name in ("cp_rank", "start", "end", "layers", "ranks")]
    if event.rank is None or not all(isinstance(number, int) and 0 <= number <= MAX_LAYERS for number in numbers):
        return None
    parts = {int(part): (int(start), int(end)) for part, start, end in _PART.findall(str(fields.get("partitions", "")))}
    partitions = tuple(parts[part] for part in sorted(parts))
    return LoggedRange(event.rank, *numbers, partitions)  # type: ignore[arg-type]


def logged_ranges(events: Mapping[str | None, Event]) -> tuple[LoggedRange, ...]:
    """Shard plans of all ranks that logged one, by context-parallel rank."""
    found = [logged for event in events.values() if (logged := logged_range(event)) is not None]
    return tuple(sorted(found, key=lambda logged: (logged.cp_rank, logged.rank)))


def uncovered(ranges: tuple[tuple[int, int], ...], layers: int) -> tuple[int, ...]:
    """Layers that not exactly one of the ranges owns."""
    owners = [0] * layers
    for start, end in ranges:
        for layer in range(max(0, start), min(end, layers)):
            owners[layer] += 1
    return tuple(layer for layer, count in enumerate(owners) if count != 1)
