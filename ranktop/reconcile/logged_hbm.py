"""What a rank's own log lines say of its GPU memory, for servers that tell it nowhere else.

Kinds of `collectors/serverlog_lines.py`; SGLang prints "GB" for 2**30 on the device. A draft model logs its own lines,
which count on top.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ranktop.plan.plan import GIB
from ranktop.reconcile.eventlog import EventLog
from ranktop.sample import Event


class LoggedHbm(Struct, frozen=True):
    """Bytes by purpose, as logged with two decimals of a GiB; None where the log has no such line of this rank."""

    weights_bytes: int | None = None
    kv_bytes: int | None = None
    graphs_bytes: int | None = None


def logged_hbm(log: EventLog, server: str, rank: str) -> LoggedHbm:
    """From the newest start of the server."""
    return LoggedHbm(
        weights_bytes=_sum(log.all_of(server, "weights_end"), rank, "used_gib"),
        kv_bytes=_sum(log.all_of(server, "l1_pool"), rank, "size_gib", "k_gib", "v_gib"),
        graphs_bytes=_sum(log.all_of(server, "graph_end"), rank, "used_gib"),
    )


def _sum(events: Iterable[Event], rank: str, *fields: str) -> int | None:
    """One rank without a tag is TP0."""
    sizes = [
        size
        for event in events
        if (event.rank or "TP0") == rank
        for field in fields
        if isinstance(size := event.fields.get(field), int | float)
    ]
    return round(sum(sizes) * GIB) if sizes else None
