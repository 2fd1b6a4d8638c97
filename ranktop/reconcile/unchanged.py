"""What was made at the update before and would be the same now, because it is made of the same.

Maps, placements, plans and the memory of a GPU in service seldom change, so most of what is made of them need not be
made anew every second. A source that is read seldom hands out one object until it is read again: comparing costs
nothing then.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Unchanged:
    """Results of pure functions of the last update and of this one; older ones are forgotten."""

    def __init__(self) -> None:
        self._before: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}
        self._now: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}

    def next_update(self) -> None:
        """What is not asked for again until the next call is forgotten then."""
        self._before, self._now = self._now, {}

    def of(self, key: Hashable, make: Callable[..., T], *inputs: Any) -> T:
        """`make(*inputs)`, a pure function of frozen inputs."""
        known = self._before.get(key)
        if known is None or known[0] != inputs:
            known = (inputs, make(*inputs))
        self._now[key] = known
        return known[1]
