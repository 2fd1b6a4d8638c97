"""The last quarter of an hour of the values that charts show: one number a second and line, nothing more."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

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
SERVER_LINES = ("ttft.p50", "ttft.p99", "inter_token.p50", "e2e.p50", "throughput")
TIER_LINES = (
    "tiers.device_hit",
    "tiers.host_hit",
    "tiers.storage_hit",
    "tiers.miss",
    "transfers.backup",
    "transfers.load_back",
    "transfers.prefetch",
)
Owner = tuple[str, str]
"""(server, rank); of a server's own values the rank is empty, of the node's both."""
_NODE: Owner = ("", "")


class Trails:
    """A ring of `SPAN_SECONDS` points a line. A second without a reading is NaN, and drawn as a gap."""

    def __init__(self, points: int = SPAN_SECONDS) -> None:
        self._points = points
        self._of: dict[Owner, array[float]] = {}
        """Every owner's lines of `_lines_of`, side by side for each point."""
        self._at = array("d")

    def push(self, verdict: Verdict) -> None:
        """Add one verdict."""
        before = len(self._at)
        self._at.append(verdict.sample.at_unix_seconds)
        for owner, told in values_of(verdict):
            values = self._of.get(owner)
            if values is None:
                values = self._of[owner] = _gap(owner, before)
            values.extend([math.nan if value is None else value for value in told])
        count = len(self._at)
        cut = count - self._points if count > self._points + 64 else 0
        for owner, values in self._of.items():
            width = len(_lines_of(owner))
            if len(values) < count * width:
                values.extend(_gap(owner, 1))
            if cut:
                del values[: cut * width]
        del self._at[:cut]

    def begin_with(self, earlier: Iterable[Verdict], seconds: int) -> None:
        """What was before the first point; each verdict stands for so many seconds."""
        before = Trails(self._points)
        for verdict in earlier:
            for _ in range(seconds):
                before.push(verdict)
        count, own = len(before._at), len(self._at)
        self._at = before._at + self._at
        self._of = {
            owner: before._of.get(owner, _gap(owner, count)) + self._of.get(owner, _gap(owner, own))
            for owner in before._of.keys() | self._of.keys()
        }

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
        owner = (server, rank)
        lines = _lines_of(owner)
        if owner not in self._of or line not in lines:
            return array("d")
        values = self._of[owner][lines.index(line) :: len(lines)][: len(self._at)]
        return array("d") if all(map(math.isnan, values)) else values

    def node(self, line: str) -> Sequence[float]:
        """Values of the node or of its tiers."""
        return self.values(*_NODE, line)


def values_of(verdict: Verdict) -> Iterator[tuple[Owner, Sequence[float | None]]]:
    """The numbers of one verdict that charts follow, of every owner those of `_lines_of`."""
    for rank in verdict.ranks:
        yield (rank.server, rank.rank), rank.seen(RANK_LINES)
    for server in verdict.servers:
        service = server.service
        yield (
            (server.id, ""),
            (
                service.ttft_seconds.p50,
                service.ttft_seconds.p99,
                service.inter_token_seconds.p50,
                service.e2e_seconds.p50,
                service.tokens_per_second,
            ),
        )
    tiers, transfers = verdict.tiers, verdict.transfers
    yield (
        _NODE,
        (
            *[verdict.node.line(name).seen for name in NODE_LINES],
            tiers.device_hit,
            tiers.host_hit,
            tiers.storage_hit,
            tiers.miss,
            transfers.backup_bytes_per_second,
            transfers.load_back_bytes_per_second,
            transfers.prefetch_bytes_per_second,
        ),
    )


def _lines_of(owner: Owner) -> tuple[str, ...]:
    return RANK_LINES if owner[1] else SERVER_LINES if owner[0] else NODE_LINES + TIER_LINES


def _gap(owner: Owner, points: int) -> array[float]:
    return array("d", [math.nan]) * (points * len(_lines_of(owner)))
