"""The last quarter of an hour of the values that charts show: one number a second and line, nothing more."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from ranktop.reconcile.verdict import Verdict

SPAN_SECONDS = 900
NODE_LINES = ("host.available", "host.pools", "host.pressure", "requests.running", "requests.queued")
RANK_LINES = (
    "hbm.process",
    "host.anon",
    "host.rss",
    "l1.used",
    "l2.used",
    "numa.local",
    "rate.backup",
    "rate.load_back",
    "spec.accept_length",
)
Owner = tuple[str, str]
"""(server, rank); of a server's own values the rank is empty, of the node's both."""
_NODE: Owner = ("", "")


class Trails:
    """A ring of `SPAN_SECONDS` points a line. A second without a reading is NaN, and drawn as a gap."""

    def __init__(self, points: int = SPAN_SECONDS) -> None:
        self._points = points
        self._of: dict[Owner, dict[str, array[float]]] = {}
        self._at = array("d")

    def push(self, verdict: Verdict) -> None:
        """Add one verdict."""
        self._at.append(verdict.sample.at_unix_seconds)
        for owner, told in values_of(verdict):
            self._add(self._of.setdefault(owner, {}), told)
        count = len(self._at)
        cut = count - self._points if count > self._points + 64 else 0
        for values in self._arrays():
            if len(values) < count:
                values.append(math.nan)
            if cut:
                del values[:cut]
        del self._at[:cut]

    def begin_with(self, earlier: Iterable[Verdict], seconds: int) -> None:
        """What was before the first point; each verdict stands for so many seconds."""
        before = Trails(self._points)
        for verdict in earlier:
            for _ in range(seconds):
                before.push(verdict)
        count, own = len(before._at), len(self._at)
        self._at = before._at + self._at
        for owner in before._of.keys() | self._of.keys():
            old, new = before._of.get(owner, {}), self._of.get(owner, {})
            self._of[owner] = {
                name: old.get(name, _gap(count)) + new.get(name, _gap(own)) for name in old.keys() | new.keys()
            }

    def _add(self, known: dict[str, array[float]], told: Iterable[tuple[str, float | None]]) -> None:
        for name, value in told:
            if value is None:
                continue
            values = known.get(name)
            if values is None:
                values = known[name] = _gap(len(self._at) - 1)
            values.append(value)

    def _arrays(self) -> Iterator[array[float]]:
        return chain.from_iterable([lines.values() for lines in self._of.values()])

    def until(self, when: float) -> Trails:
        """These trails as they stood at `when` (Unix seconds); good until the next `push`, as nothing is copied."""
        then = Trails(self._points)
        then._of, then._at = self._of, self._at[: bisect_right(self._at, when)]
        return then

    def times(self) -> Sequence[float]:
        """Unix seconds of the points, oldest first."""
        return self._at

    def values(self, server: str, rank: str, line: str) -> Sequence[float]:
        """The values beside `times()`; empty when the line was never seen."""
        values = self._of.get((server, rank), {}).get(line, array("d"))
        return values if len(values) <= len(self._at) else values[: len(self._at)]

    def node(self, line: str) -> Sequence[float]:
        """Values of the node or of its tiers."""
        return self.values("", "", line)


def values_of(verdict: Verdict) -> Iterator[tuple[Owner, Iterable[tuple[str, float | None]]]]:
    """The numbers of one verdict that charts follow, each line of an owner once."""
    for rank in verdict.ranks:
        yield (rank.server, rank.rank), zip(RANK_LINES, [rank.line(name).seen for name in RANK_LINES], strict=True)
    for server in verdict.servers:
        service = server.service
        yield (
            (server.id, ""),
            (
                ("ttft.p50", service.ttft_seconds.p50),
                ("ttft.p99", service.ttft_seconds.p99),
                ("inter_token.p50", service.inter_token_seconds.p50),
                ("e2e.p50", service.e2e_seconds.p50),
                ("throughput", service.tokens_per_second),
            ),
        )
    tiers, transfers = verdict.tiers, verdict.transfers
    yield (
        _NODE,
        (
            *((name, verdict.node.line(name).seen) for name in NODE_LINES),
            ("tiers.device_hit", tiers.device_hit),
            ("tiers.host_hit", tiers.host_hit),
            ("tiers.storage_hit", tiers.storage_hit),
            ("tiers.miss", tiers.miss),
            ("transfers.backup", transfers.backup_bytes_per_second),
            ("transfers.load_back", transfers.load_back_bytes_per_second),
            ("transfers.prefetch", transfers.prefetch_bytes_per_second),
        ),
    )


def _gap(points: int) -> array[float]:
    return array("d", [math.nan]) * points
