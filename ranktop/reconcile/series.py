"""A metrics page by name and rank, and what its counters gained since the page before.

Who writes a family, and so how its samples join, is said in `families.py`.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ranktop.reconcile.families import FAMILIES
from ranktop.sample import MetricsPage, RankTag, SeriesKey

_EVERY_RANK = "sglang:max_total_num_tokens"
_STATS_RANKS = "sglang:num_running_reqs"
_WITH_PID = "sglang:num_retracted_reqs"
_COUNTER_NAMES = frozenset(
    name for family in FAMILIES.values() if family.kind != "gauge" for name in family.series_names
)


class RankLabels(NamedTuple):
    """A rank as scheduler series label it; an absent label counts as 0. `tp` is global within the engine."""

    dp: int
    pp: int
    tp: int

    def __str__(self) -> str:
        return f"{self.dp}/{self.pp}/{self.tp}"


class Value(Struct, frozen=True):
    """A value for a rank. `group`: it is that of the rank's group, not the rank's own."""

    value: float
    group: bool = False


class Series:
    """An index over one page. Rows of a priority class are left out: they break the total down."""

    def __init__(self, page: MetricsPage | None) -> None:
        self._rows: dict[str, list[tuple[dict[str, str], float]]] = {}
        for key, value in page.points if page is not None else ():
            labels = dict(key.labels)
            if not labels.get("priority"):
                self._rows.setdefault(key.name, []).append((labels, value))
        self.at_unix_seconds = page.at_unix_seconds if page is not None else None
        self._ranked: dict[str, dict[RankLabels, list[tuple[dict[str, str], float]]]] = {}
        """Rows by series name and rank, found once: every value of every rank asks for them."""

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    def rows(self, name: str, **wanted: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of every sample of that name that carries the wanted label values."""
        rows = self._rows.get(name, [])
        if not wanted:
            return rows
        return [row for row in rows if all(row[0].get(label) == value for label, value in wanted.items())]

    def total(self, name: str, **wanted: str) -> float | None:
        """Sum over every sample, None when there is none. Not for copies: see `logical`."""
        values = [value for _, value in self.rows(name, **wanted)]
        return sum(values) if values else None

    def own(self, name: str, rank: RankLabels, **wanted: str) -> float | None:
        """The rank's own value of a scheduler series. None when the page has none, or several that differ."""
        rows = self._by_rank(name).get(rank, ())
        values = {value for labels, value in rows if all(labels.get(key) == text for key, text in wanted.items())}
        return values.pop() if len(values) == 1 else None

    def of_rank(self, name: str, tag: RankTag, **wanted: str) -> Value | None:
        """The rank's own value, else that of its group's first visible stats rank (same dp and pp)."""
        rank = labels_of(tag)
        visible = self._by_rank(_STATS_RANKS)
        if rank in visible or not visible:
            own = self.own(name, rank, **wanted)
            return Value(own) if own is not None else None
        for peer in sorted(visible):
            if (peer.dp, peer.pp) == (rank.dp, rank.pp):
                value = self.own(name, peer, **wanted)
                return Value(value, group=True) if value is not None else None
        return None

    def ranks(self) -> frozenset[RankLabels]:
        """Every rank that writes this page: its constants come from all of them in every version."""
        return frozenset(self._by_rank(_EVERY_RANK))

    def stats_ranks(self) -> frozenset[RankLabels]:
        """The ranks whose gauges and batch counters are reported; a seeded 0 of another rank is no report."""
        return frozenset(self._by_rank(_STATS_RANKS))

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

    def _by_rank(self, name: str) -> dict[RankLabels, list[tuple[dict[str, str], float]]]:
        known = self._ranked.get(name)
        if known is None:
            known = self._ranked[name] = {}
            for row in self.rows(name):
                rank = rank_of(row[0])
                if rank is not None:
                    known.setdefault(rank, []).append(row)
        return known


def rank_of(labels: dict[str, str]) -> RankLabels | None:
    """The rank that a scheduler series belongs to, None for a series without rank labels."""
    tp = labels.get("tp_rank")
    return None if tp is None else _rank_labels(labels.get("dp_rank", "0"), labels.get("pp_rank", "0"), tp)


@functools.lru_cache(maxsize=4096)
def _rank_labels(dp: str, pp: str, tp: str) -> RankLabels | None:
    try:
        return RankLabels(int(dp), int(pp), int(tp))
    except ValueError:
        return None


def labels_of(tag: RankTag) -> RankLabels:
    """A process's tag as scheduler series label it."""
    return RankLabels(tag.dp or 0, tag.pp or 0, tag.tp or 0)


def window(before: MetricsPage | None, after: MetricsPage) -> Series:
    """The newer page with each counter (and histogram) replaced by what it gained; gauges as they stand.

    Without a page before, counters count from the server's start. A series that the page before lacks is new and
    counts from 0. One counter that went back means another server behind the address: the counters of a page live and
    die together (a dead rank's mmap file stays), so all of them then count from 0, even those that have grown past
    their old value. Samples of equal labels (replicas behind one address) are summed first.
    """
    then, now = _counters(before), _counters(after)
    if any(value < then.get(key, 0.0) for key, value in now.items()):
        then = {}
    gauges = tuple((key, value) for key, value in after.points if key.name not in _COUNTER_NAMES)
    gains = tuple((key, value - then.get(key, 0.0)) for key, value in now.items())
    return Series(replace(after, points=gauges + gains))


def seconds_between(before: MetricsPage | None, after: MetricsPage) -> float | None:
    """Seconds between two pages, None without a page before or when the clock went back."""
    seconds = after.at_unix_seconds - before.at_unix_seconds if before is not None else 0.0
    return seconds if seconds > 0 else None


def _counters(page: MetricsPage | None) -> dict[SeriesKey, float]:
    sums: dict[SeriesKey, float] = {}
    for key, value in page.points if page is not None else ():
        if key.name in _COUNTER_NAMES:
            sums[key] = sums.get(key, 0.0) + value
    return sums
