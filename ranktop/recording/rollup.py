"""A few plain numbers every ten seconds, for any SQLite shell and for the strip over a whole recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ranktop.finding import worst
from ranktop.reconcile.verdict import Line, TierShares, Verdict
from ranktop.recording.tables import ROLLUP_LINES

PERIOD_SECONDS = 10.0


def rollup_rows(seq: int, verdict: Verdict) -> Iterator[tuple[Any, ...]]:
    """Rows of `tables.ROLLUP` without id and checksum: the node first (rank is empty), then every rank."""
    at = verdict.sample.at_unix_seconds
    severity = worst(verdict.findings)
    yield (seq, at, "", "", *_values(verdict.node.line), *_shares(verdict.tiers), severity)
    for rank in verdict.ranks:
        own = [finding for finding in verdict.findings if finding.server == rank.server and rank.rank in finding.ranks]
        yield (seq, at, rank.server, rank.rank, *_values(rank.line), *_shares(None), worst(own))


def _values(line: Callable[[str], Line]) -> Iterator[float | int | None]:
    for column, name in ROLLUP_LINES.items():
        seen = line(name).seen
        if seen is None:
            yield None
        else:
            yield int(seen) if column.endswith(("_bytes", "_tokens", "_requests")) else float(seen)


def _shares(tiers: TierShares | None) -> tuple[float | None, float | None, float | None]:
    if tiers is None:
        return (None, None, None)
    return (tiers.device_hit, tiers.host_hit, tiers.storage_hit)
