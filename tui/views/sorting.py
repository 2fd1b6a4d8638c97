"""Sorting ranks by what a column shows: missing values last, ties by rank order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ranktop.reconcile.verdict import RankVerdict
from tui.views.view import Sort

Value = Callable[[RankVerdict], float | None]


def _seen(name: str) -> Value:
    return lambda rank: rank.line(name).seen


def _is_pinned(rank: RankVerdict) -> float | None:
    return {"ok": 1.0, "over": 1.0, "under": 0.0}.get(rank.line("host.pinned").status)


VALUES: dict[str, Value] = {
    "hbm": _seen("hbm.process"),
    "primary": _seen("host.primary"),
    "indexer": _seen("host.indexer"),
    "local": _seen("numa.local"),
    "anon": _seen("host.anon"),
    "l1": _seen("l1.used"),
    "l2": _seen("l2.used"),
    "backup": _seen("rate.backup"),
    "load_back": _seen("rate.load_back"),
    "pinned": _is_pinned,
    "gpu": lambda rank: rank.gpu,
    "numa": lambda rank: rank.numa,
}
"""Column key -> what it sorts by."""

KEYS = ("state", *VALUES)
"""In the order in which a key goes through them: the worst ranks first."""


def next_sort(sort: Sort) -> Sort:
    """The next column leads, the one before it breaks ties; after the last, rank order again."""
    if not sort.keys:
        return Sort((KEYS[0],))
    place = KEYS.index(sort.keys[0]) + 1
    return Sort() if place == len(KEYS) else Sort((KEYS[place], sort.keys[0]), sort.descending)


def arranged(ranks: Sequence[RankVerdict], sort: Sort, worst: Value = lambda _: None) -> list[RankVerdict]:
    """Stable: the least important key is applied first. `worst` says how bad the state of a rank is."""
    order, values = list(ranks), {**VALUES, "state": worst}
    for index, key in reversed(list(enumerate(sort.keys))):
        descending = sort.descending if index == 0 else True
        order.sort(key=lambda rank, of=values[key], descending=descending: _place(of(rank), descending))
    return order


def _place(value: float | None, descending: bool) -> tuple[bool, float]:
    return (value is None, 0.0 if value is None else -value if descending else value)
