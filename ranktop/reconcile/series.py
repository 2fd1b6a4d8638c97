"""A metrics page by name and rank, and what its counters gained since the page before.

Who writes a family, and so how its samples join, is said in `families.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from ranktop.reconcile.pageindex import EVERY_RANK, Labels, PageIndex
from ranktop.reconcile.ranklabels import RankLabels, rank_of
from ranktop.sample import MetricsPage, SeriesKey

_STATS_RANKS = "sglang:num_running_reqs"
_WITH_PID = "sglang:num_retracted_reqs"


class Series:
    """One page by name and rank. Rows of a priority class are left out: they break the total down."""

    def __init__(self, page: MetricsPage, known: Series | None = None) -> None:
        """`known` is an earlier page of the same server, whose index serves this one too if it has the same series."""
        index = known.index if known is not None else None
        self.index = index if index is not None and index.keys == page.keys else PageIndex(page.keys)
        self.at_unix_seconds = page.at_unix_seconds
        self._values: Sequence[float] = page.values

    @classmethod
    def of(cls, index: PageIndex, values: Sequence[float], at_unix_seconds: float) -> Self:
        """The series of that index with these values."""
        made = cls.__new__(cls)
        made.index, made._values, made.at_unix_seconds = index, values, at_unix_seconds
        return made

    def __contains__(self, name: str) -> bool:
        return name in self.index.by_name

    def rows(self, name: str, **wanted: str) -> list[tuple[Labels, float]]:
        """Labels and value of every sample of that name that carries the wanted label values."""
        values = self._values
        return [
            (labels, values[at])
            for labels, at in self.index.by_name.get(name, ())
            if not wanted or all(labels.get(label) == value for label, value in wanted.items())
        ]

    def total(self, name: str, **wanted: str) -> float | None:
        """Sum over every sample, None when there is none. Not for copies: see `logical`."""
        values = [value for _, value in self.rows(name, **wanted)]
        return sum(values) if values else None

    def own(self, name: str, rank: RankLabels, **wanted: str) -> float | None:
        """The rank's own value of a scheduler series. None when the page has none, or several that differ."""
        places = self.index.by_rank(name).get(rank, ())
        if len(places) == 1 and not wanted:
            return self._values[places[0][1]]
        values = {
            self._values[at]
            for labels, at in places
            if not wanted or all(labels.get(key) == text for key, text in wanted.items())
        }
        return values.pop() if len(values) == 1 else None

    def own_of(self, names: tuple[str, ...], rank: RankLabels) -> list[float | None]:
        """`own` of each of these names, which are looked for once on pages of the same series."""
        places, values = self.index.single(rank, names), self._values
        if places is None:
            return [self.own(name, rank) for name in names]
        return [None if at is None else values[at] for at in places]

    def all_own(self, name: str, rank: RankLabels) -> list[float]:
        """Every value of a scheduler series that the rank has."""
        return [self._values[at] for _, at in self.index.by_rank(name).get(rank, ())]

    def at(self, places: Iterable[int]) -> list[float]:
        """The values at these places of the index."""
        return [self._values[place] for place in places]

    def speaker(self, rank: RankLabels) -> RankLabels | None:
        """Whose gauges tell of the rank: its own, else those of its group's first visible stats rank (same dp and
        pp). None where no rank of its group is visible."""
        visible = self.index.by_rank(_STATS_RANKS)
        if rank in visible or not visible:
            return rank
        return min((peer for peer in visible if (peer.dp, peer.pp) == (rank.dp, rank.pp)), default=None)

    def ranks(self) -> frozenset[RankLabels]:
        """Every rank that writes this page: its constants come from all of them in every version."""
        return frozenset(self.index.by_rank(EVERY_RANK))

    def stats_ranks(self) -> frozenset[RankLabels]:
        """The ranks whose gauges and batch counters are reported; a seeded 0 of another rank is no report."""
        return frozenset(self.index.by_rank(_STATS_RANKS))

    def pids(self) -> dict[int, RankLabels]:
        """Rank by the pid that it wrote under, also of ranks that have died: only this gauge carries one."""
        found = ((labels.get("pid", ""), rank_of(labels)) for labels, _ in self.rows(_WITH_PID))
        return {int(pid): rank for pid, rank in found if pid.isdecimal() and rank is not None}

    def groups(self) -> int:
        """DP groups and replicas on this page, at least 1. The ranks of one group schedule alike."""
        return max(1, len({rank.dp for rank in self.ranks() | self.stats_ranks()}))

    def leaders(self) -> tuple[RankLabels, ...]:
        """One stats rank a group: where a value that all ranks of a group share is read once."""
        first: dict[int, RankLabels] = {}
        for rank in sorted(self.stats_ranks()):
            first.setdefault(rank.dp, rank)
        return tuple(first.values())

    def over_groups(self, name: str, **wanted: str) -> float | None:
        """A stats series summed over groups, each group counted once. None when no group reports it."""
        values = [self.own(name, rank, **wanted) for rank in self.leaders()]
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    def most_over_groups(self, name: str, **wanted: str) -> float | None:
        """A counter that every rank of a group raises for the same request: per group the most that one counted."""
        most: dict[int, float] = {}
        for labels, value in self.rows(name, **wanted):
            rank = rank_of(labels)
            if rank is not None:
                most[rank.dp] = max(most.get(rank.dp, 0.0), value)
        return sum(most.values()) if most else None

    def since(self, before: Series | None) -> Series:
        """These series with each counter (and histogram) replaced by what it gained; gauges as they stand.

        Without a page before, counters count from the server's start. A series that the page before lacks is new and
        counts from 0. One counter that went back means another server behind the address: the counters of a page live
        and die together (a dead rank's mmap file stays), so all of them then count from 0, even those that have grown
        past their old value. Samples of equal labels (replicas behind one address) are summed first.
        """
        now, then = self._summed(), before._summed() if before is not None else None
        if then is None:
            return now
        places, values = now.index.counters, list(now._values)
        if then.index is now.index:
            old = [then._values[at] for at in places]
        else:
            counted = {then.index.keys[at]: then._values[at] for at in then.index.counters}
            old = [counted.get(now.index.keys[at], 0.0) for at in places]
        if all(values[at] >= was for at, was in zip(places, old, strict=True)):
            for at, was in zip(places, old, strict=True):
                values[at] -= was
        return Series.of(now.index, values, now.at_unix_seconds)

    def _summed(self) -> Series:
        """The same, with counters of equal labels as one."""
        if not self.index.has_doubles:
            return self
        counters = set(self.index.counters)
        values = {at: value for at, value in enumerate(self._values) if at not in counters}
        sums: dict[SeriesKey, float] = {}
        for at in self.index.counters:
            key = self.index.keys[at]
            sums[key] = sums.get(key, 0.0) + self._values[at]
        keys = [*(self.index.keys[at] for at in values), *sums]
        return Series.of(PageIndex(keys), [*values.values(), *sums.values()], self.at_unix_seconds)


def window(before: MetricsPage | None, after: MetricsPage) -> Series:
    """What the newer of two pages gained: see `Series.since`."""
    return Series(after).since(Series(before) if before is not None else None)


def seconds_between(before: Series | MetricsPage | None, after: Series | MetricsPage) -> float | None:
    """Seconds between two pages, None without a page before or when the clock went back."""
    seconds = after.at_unix_seconds - before.at_unix_seconds if before is not None else 0.0
    return seconds if seconds > 0 else None
