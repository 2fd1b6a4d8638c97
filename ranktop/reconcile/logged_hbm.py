"""What a rank's own log lines say of its GPU memory, for servers that tell it nowhere else.

Kinds of `collectors/serverlog_lines.py`; SGLang prints "GB" for 2**30 on the device. A draft model logs its own lines,
which count on top.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ranktop.plan.plan import GIB
from ranktop.sample import Event


class LoggedHbm(Struct, frozen=True):
    """Bytes by purpose, as logged with two decimals of a GiB; None where the log has no such line of this rank."""

    weights_bytes: int | None = None
    kv_bytes: int | None = None
    graphs_bytes: int | None = None


def logged_hbm(
    weights_ends: Iterable[Event], l1_pools: Iterable[Event], graph_ends: Iterable[Event]
) -> dict[str, LoggedHbm]:
    """By rank, from these events of one server's newest start."""
    weights = _sums(weights_ends, "used_gib")
    kv = _sums(l1_pools, "size_gib", "k_gib", "v_gib")
    graphs = _sums(graph_ends, "used_gib")
    return {
        rank: LoggedHbm(weights.get(rank), kv.get(rank), graphs.get(rank))
        for rank in dict.fromkeys((*weights, *kv, *graphs))
    }


def _sums(events: Iterable[Event], *fields: str) -> dict[str, int]:
    """Bytes by rank. One rank without a tag is TP0."""
    sizes: dict[str, float] = {}
    for event in events:
        for field in fields:
            if isinstance(size := event.fields.get(field), int | float):
                rank = event.rank or "TP0"
                sizes[rank] = sizes.get(rank, 0.0) + size
    return {rank: round(size * GIB) for rank, size in sizes.items()}
