"""Where on a page the values of a name and of a rank stand: the same on every page that has the same series.

A server's pages differ in their values every few seconds and in their series seldom, so this is found once.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ranktop.reconcile.families import FAMILIES
from ranktop.reconcile.ranklabels import RankLabels, rank_of
from ranktop.sample import SeriesKey

Labels = dict[str, str]
Place = tuple[Labels, int]
"""Labels of a series, and its number on the page."""

EVERY_RANK = "sglang:max_total_num_tokens"
"""A constant that every rank writes in every version."""

_COUNTER_NAMES = frozenset(
    name for family in FAMILIES.values() if family.kind != "gauge" for name in family.series_names
)


class Groups(NamedTuple):
    """Numbers of one name's series by the values of some rank labels. `widths`: how many values each label has."""

    places: dict[tuple[str, ...], list[int]]
    widths: tuple[int, ...]


class PageIndex:
    """Of the series of one page. Those of a priority class are left out: they break the total down."""

    def __init__(self, keys: Sequence[SeriesKey]) -> None:
        self.keys = keys
        self.by_name: dict[str, list[Place]] = {}
        for at, key in enumerate(keys):
            labels = dict(key.labels)
            if not labels.get("priority"):
                self.by_name.setdefault(key.name, []).append((labels, at))
        self.counters = [at for at, key in enumerate(keys) if key.name in _COUNTER_NAMES]
        """Numbers of the series that only grow while their server lives."""
        self.has_doubles = len({keys[at] for at in self.counters}) < len(self.counters)
        """Whether two counters have the same labels: replicas behind one address."""
        self._by_rank: dict[str, dict[RankLabels, list[Place]]] = {}
        self._groups: dict[tuple[str, ...], Groups] = {}
        self._single: dict[tuple[RankLabels, tuple[str, ...]], tuple[int | None, ...] | None] = {}

    def by_rank(self, name: str) -> dict[RankLabels, list[Place]]:
        """The places of a name by rank; series without rank labels are left out."""
        known = self._by_rank.get(name)
        if known is None:
            known = self._by_rank[name] = {}
            for place in self.by_name.get(name, ()):
                rank = rank_of(place[0])
                if rank is not None:
                    known.setdefault(rank, []).append(place)
        return known

    def single(self, rank: RankLabels, names: tuple[str, ...]) -> tuple[int | None, ...] | None:
        """The rank's number of each name, None for a name that it has not; no numbers where it has a name twice."""
        key = (rank, names)
        if key not in self._single:
            places = [self.by_rank(name).get(rank, ()) for name in names]
            is_single = all(len(found) <= 1 for found in places)
            self._single[key] = tuple([found[0][1] if found else None for found in places]) if is_single else None
        return self._single[key]

    def groups(self, name: str, *labels: str) -> Groups:
        """The series of a name by these rank labels; an absent one counts as 0."""
        known = self._groups.get((name, *labels))
        if known is None:
            places: dict[tuple[str, ...], list[int]] = {}
            for told, at in self.by_name.get(name, ()):
                places.setdefault(tuple([told.get(label, "0") for label in labels]), []).append(at)
            widths = tuple(len(set(values)) for values in zip(*places, strict=True))
            known = self._groups[name, *labels] = Groups(places, widths)
        return known

    def peers(self, rank: RankLabels) -> int:
        """How many ranks that write the page share the rank's DP group and pipeline stage, itself among them."""
        return self._peers[rank.dp, rank.pp]

    @functools.cached_property
    def _peers(self) -> Counter[tuple[int, int]]:
        return Counter((known.dp, known.pp) for known in self.by_rank(EVERY_RANK))
