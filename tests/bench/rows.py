"""One measured figure, and how figures are taken: several runs, minimum, median and maximum."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

from msgspec import Struct


class Row(Struct, frozen=True):
    """A figure against its budget. `limit` None: no budget, only told. `peer`: what another program does here."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    low: float | None = None
    high: float | None = None
    peer: str = ""

    @property
    def is_met(self) -> bool | None:
        return None if self.limit is None else self.value <= self.limit


def of_runs(name: str, values: list[float], unit: str, limit: float | None = None, peer: str = "") -> Row:
    """The median of the runs, with the smallest and the largest."""
    return Row(name, statistics.median(values), unit, limit, min(values), max(values), peer)


def cpu_milliseconds(work: Callable[[], object], runs: int = 5, times: int = 20) -> list[float]:
    """CPU time of one call, for each of the runs."""
    work()
    taken: list[float] = []
    for _ in range(runs):
        started = time.process_time()
        for _ in range(times):
            work()
        taken.append((time.process_time() - started) / times * 1000)
    return taken


def table(rows: list[Row]) -> str:
    """Aligned text."""
    lines = [f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs", ""]
    lines.append(f"{'what':<52}{'median':>10}{'min':>10}{'max':>10}  {'unit':<9}{'budget':>9}  met  beside")
    for row in rows:
        low = "" if row.low is None else f"{row.low:.3g}"
        high = "" if row.high is None else f"{row.high:.3g}"
        limit = "" if row.limit is None else f"{row.limit:g}"
        met = {True: "yes", False: "NO", None: ""}[row.is_met]
        figures = f"{row.value:>10.3g}{low:>10}{high:>10}  {row.unit:<9}{limit:>9}"
        lines.append(f"{row.name:<52}{figures}  {met:<4} {row.peer}".rstrip())
    return "\n".join(lines)
