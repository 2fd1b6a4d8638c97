"""Sorting ranks by what a column shows: missing values last, ties by rank order."""

from __future__ import annotations

from collections.abc import Sequence

from ranktop.reconcile.verdict import RankVerdict
from tui.views.view import Sort

SORT_LINES = {
    "hbm": "hbm.process",
    "primary": "host.primary",
    "indexer": "host.indexer",
    "local": "numa.local",
    "anon": "host.anon",
    "l1": "l1.used",
    "l2": "l2.used",
    "backup": "rate.backup",
    "load_back": "rate.load_back",
}
"""Column key -> the line whose seen value it sorts by."""


def next_sort(sort: Sort) -> Sort:
    """The next column leads, the one before it breaks ties; after the last, rank order again."""
    keys = list(SORT_LINES)
    if not sort.keys:
        return Sort((keys[0],))
    place = keys.index(sort.keys[0]) + 1
    return Sort() if place == len(keys) else Sort((keys[place], sort.keys[0]), sort.descending)


def arranged(ranks: Sequence[RankVerdict], sort: Sort) -> list[RankVerdict]:
    """Stable: the least important key is applied first."""
    order = list(ranks)
    for index, key in reversed(list(enumerate(sort.keys))):
        descending = sort.descending if index == 0 else True
        order.sort(key=lambda rank, key=key, descending=descending: _place(rank, key, descending))
    return order


def _place(rank: RankVerdict, key: str, descending: bool) -> tuple[bool, float]:
    seen = rank.line(SORT_LINES[key]).seen
    return (seen is None, 0.0 if seen is None else -seen if descending else seen)
