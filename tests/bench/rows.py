"""One measured figure, and how figures are shown: minimum, median and maximum of several runs, budget and peers."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace


class Peer(Struct, frozen=True):
    """What another program does here, in the unit of the row. `value` None: it is not on this machine."""

    name: str
    value: float | None = None

    def told(self) -> str:
        return f"{self.name} {'not here' if self.value is None else f'{self.value:.3g}'}"


class Row(Struct, frozen=True):
    """A figure against its budget. `limit` None: no budget, only told. `low` and `high` are those of the runs."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    low: float | None = None
    high: float | None = None
    peers: tuple[Peer, ...] = ()

    @property
    def is_met(self) -> bool | None:
        return None if self.limit is None else self.value <= self.limit

    def beside(self, *peers: Peer) -> Row:
        return replace(self, peers=peers)


def of_runs(name: str, values: Sequence[float], unit: str, limit: float | None = None) -> Row:
    """The median of the runs, with the smallest and the largest."""
    return Row(name, statistics.median(values), unit, limit, min(values), max(values))


def document(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """docs/bench.json: a list of {name, value, unit, limit, peer}."""
    return [
        {
            "name": row.name,
            "value": row.value,
            "unit": row.unit,
            "limit": row.limit,
            "peer": ", ".join(peer.told() for peer in row.peers) or None,
        }
        for row in rows
    ]


def table(rows: Sequence[Row]) -> str:
    """Aligned text. Beside a peer stands how many times its figure ours is."""
    lines = [f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs", ""]
    lines.append(
        f"{'what':<52}{'min':>10}{'median':>10}{'max':>10}  {'unit':<9}{'budget':>9}  met  beside (ours/theirs)"
    )
    for row in rows:
        low, high = ("" if value is None else f"{value:.3g}" for value in (row.low, row.high))
        limit = "" if row.limit is None else f"{row.limit:g}"
        met = {True: "yes", False: "NO", None: ""}[row.is_met]
        figures = f"{low:>10}{row.value:>10.3g}{high:>10}  {row.unit:<9}{limit:>9}"
        beside = ", ".join(_against(row, peer) for peer in row.peers)
        lines.append(f"{row.name:<52}{figures}  {met:<4} {beside}".rstrip())
    return "\n".join(lines)


def _against(row: Row, peer: Peer) -> str:
    return f"{peer.told()} ({row.value / peer.value:.2g}x)" if peer.value else peer.told()
