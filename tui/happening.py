"""One row of the Events view, and how equal log lines of several ranks become one."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

from ranktop.reconcile.grouping import rank_span
from ranktop.sample import Event

FOLD_SECONDS = 10.0
"""Ranks log the same step within so long of each other: pools that are pinned one by one take seconds."""

BATCHES = frozenset({"prefill_batch", "decode_batch"})
"""Kinds of log lines of which a busy server writes one a second: they must not push out what matters."""

_NUMBER = re.compile(r"\d+")


class Happening(NamedTuple):
    """What happened. `role` colours it."""

    at: float
    """When it began, in Unix seconds."""
    kind: str
    where: str
    text: str
    role: str
    server: str | None = None
    """Whose log says so."""
    ranks: tuple[tuple[str, float], ...] = ()
    """Which of its ranks, and when each, as logged; none for a line of the main process."""

    @property
    def begin(self) -> Happening:
        """What stays the same while more ranks log it."""
        return self._replace(where="", ranks=self.ranks[:1]) if self.ranks else self

    def joined(self, other: Happening) -> Happening | None:
        """Both as one; None where they are not one line of different ranks at about one time."""
        is_same = (self.kind, self.text, self.server) == (other.kind, other.text, other.server)
        if not (is_same and self.ranks and other.ranks and abs(other.at - self.at) <= FOLD_SECONDS):
            return None
        ranks = dict(self.ranks)
        return None if any(rank in ranks for rank, _ in other.ranks) else self._of((*self.ranks, *other.ranks))

    def until(self, when: float) -> Happening:
        """As it was at `when` (Unix seconds), which is not before it began."""
        ranks = tuple(logged for logged in self.ranks if logged[1] <= when)
        return self if len(ranks) == len(self.ranks) else self._of(ranks)

    def _of(self, ranks: tuple[tuple[str, float], ...]) -> Happening:
        return self._replace(where=_where(tuple(rank for rank, _ in ranks)), ranks=ranks)


def marked(at: float, text: str) -> Happening:
    """A mark that somebody put into a recording."""
    return Happening(at, "mark", "", text, "accent")


def logged(events: Iterable[Event]) -> list[Happening]:
    """Log lines, oldest first; equal ones of several ranks of a server are one."""
    found: list[tuple[Event, dict[str, float]]] = []
    newest: dict[tuple[str | None, str, str], tuple[Event, dict[str, float]]] = {}
    for event in events:
        key = event.server, event.kind, event.text
        begun = newest.get(key)
        if event.rank is None:
            found.append((event, {}))
        elif begun is None or event.rank in begun[1] or not _is_near(begun[0], event):
            newest[key] = event, {event.rank: event.at_unix_seconds}
            found.append(newest[key])
        else:
            begun[1][event.rank] = event.at_unix_seconds
    return [_happening(event, ranks) for event, ranks in found]


def in_order(ranks: Iterable[str]) -> list[str]:
    """By their numbers: TP2 before TP10."""
    return sorted(ranks, key=lambda rank: [int(number) for number in _NUMBER.findall(rank)])


def _is_near(one: Event, other: Event) -> bool:
    return abs(one.at_unix_seconds - other.at_unix_seconds) <= FOLD_SECONDS


def _happening(event: Event, ranks: dict[str, float]) -> Happening:
    where = _where(tuple(ranks)) or event.server or ""
    role = "muted" if event.kind in BATCHES else "text"
    return Happening(event.at_unix_seconds, event.kind, where, event.text, role, event.server, tuple(ranks.items()))


@functools.lru_cache(maxsize=256)
def _where(ranks: tuple[str, ...]) -> str:
    """`TP5`, `TP0, TP2`, or `TP0-7 (8 ranks)`. Mostly they are all of a server."""
    names = in_order(ranks)
    count = f" ({len(names)} ranks)" if len(names) > 2 else ""
    return f"{rank_span(names)}{count}"
