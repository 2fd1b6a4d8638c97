"""The last quarter of an hour of the values that charts show: one number a second and line, nothing more."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from ranktop.reconcile.verdict import Verdict

SPAN_SECONDS = 900
NODE_LINES = frozenset({"host.available", "host.pools", "host.pressure", "requests.running", "requests.queued"})
RANK_LINES = frozenset(
    {
        "hbm.process",
        "host.anon",
        "host.rss",
        "l1.used",
        "l2.used",
        "numa.local",
        "rate.backup",
        "rate.load_back",
        "spec.accept_length",
    }
)
Key = tuple[str, str, str]
"""(server, rank, line); the node and its tiers have empty server and rank."""


class Trails:
    """A ring of `SPAN_SECONDS` points a key. A second without a reading is NaN, and drawn as a gap."""

    def __init__(self, points: int = SPAN_SECONDS) -> None:
        self._points = points
        self._values: dict[Key, array[float]] = {}
        self._at = array("d")

    def push(self, verdict: Verdict) -> None:
        """Add one verdict."""
        self._at.append(verdict.sample.at_unix_seconds)
        told = dict(values_of(verdict))
        for key in told.keys() - self._values.keys():
            self._values[key] = array("d", [math.nan] * (len(self._at) - 1))
        for key, values in self._values.items():
            value = told.get(key)
            values.append(math.nan if value is None else value)
        if len(self._at) > self._points + 64:
            cut = len(self._at) - self._points
            del self._at[:cut]
            for values in self._values.values():
                del values[:cut]

    def begin_with(self, earlier: Iterable[Verdict], seconds: int) -> None:
        """What was before the first point; each verdict stands for so many seconds."""
        before = Trails(self._points)
        for verdict in earlier:
            for _ in range(seconds):
                before.push(verdict)
        count, own = len(before._at), len(self._at)
        self._at = before._at + self._at
        for key in before._values.keys() | self._values.keys():
            old = before._values.get(key, array("d", [math.nan] * count))
            self._values[key] = old + self._values.get(key, array("d", [math.nan] * own))

    def until(self, when: float) -> Trails:
        """These trails as they stood at `when` (Unix seconds); good until the next `push`, as nothing is copied."""
        then = Trails(self._points)
        then._values, then._at = self._values, self._at[: bisect_right(self._at, when)]
        return then

    def times(self) -> Sequence[float]:
        """Unix seconds of the points, oldest first."""
        return self._at

    def values(self, server: str, rank: str, line: str) -> Sequence[float]:
        """The values beside `times()`; empty when the line was never seen."""
        values = self._values.get((server, rank, line), array("d"))
        return values if len(values) <= len(self._at) else values[: len(self._at)]

    def node(self, line: str) -> Sequence[float]:
        """Values of the node or of its tiers."""
        return self.values("", "", line)


def values_of(verdict: Verdict) -> Mapping[Key, float]:
    """The numbers of one verdict that charts follow."""
    told: dict[Key, float] = {}
    for line in verdict.node.lines:
        if line.seen is not None and line.line in NODE_LINES:
            told["", "", line.line] = float(line.seen)
    for rank in verdict.ranks:
        for line in rank.lines:
            if line.seen is not None and line.line in RANK_LINES:
                told[rank.server, rank.rank, line.line] = float(line.seen)
    tiers, transfers = verdict.tiers, verdict.transfers
    for name, value in (
        ("tiers.device_hit", tiers.device_hit),
        ("tiers.host_hit", tiers.host_hit),
        ("tiers.storage_hit", tiers.storage_hit),
        ("tiers.miss", tiers.miss),
        ("transfers.backup", transfers.backup_bytes_per_second),
        ("transfers.load_back", transfers.load_back_bytes_per_second),
        ("transfers.prefetch", transfers.prefetch_bytes_per_second),
    ):
        if value is not None:
            told["", "", name] = value
    for server in verdict.servers:
        service = server.service
        for name, value in (
            ("ttft.p50", service.ttft_seconds.p50),
            ("ttft.p99", service.ttft_seconds.p99),
            ("inter_token.p50", service.inter_token_seconds.p50),
            ("e2e.p50", service.e2e_seconds.p50),
            ("throughput", service.tokens_per_second),
        ):
            if value is not None:
                told[server.id, "", name] = value
    return told
