"""What a screen of the fleet needs at once: the fleet or one opened node, and the strip below the title."""

from __future__ import annotations

from typing import NamedTuple

from ranktop.fleet.look import Change, Fleet, look, look_at_node, look_back
from ranktop.fleet.node import bare_verdict
from ranktop.fleet.queries import Scope
from ranktop.fleet.rows import NodeRow
from ranktop.fleet.source import QuerySource
from ranktop.reconcile.verdict import Verdict

STRIP_CELLS = 120


class Wanted(NamedTuple):
    """What to read. `when` None: now. `node` None: the fleet."""

    now: float
    when: float | None = None
    node: NodeRow | None = None
    span_seconds: float = 3600.0

    @property
    def instance(self) -> str | None:
        """The opened node's name."""
        return self.node.instance if self.node is not None else None


class Reading(NamedTuple):
    """One set of answers. With a `node` its verdict, and the fleet as it was before that was opened."""

    fleet: Fleet
    span: tuple[float, float]
    changes: tuple[Change, ...]
    node: NodeRow | None = None
    verdict: Verdict | None = None

    @property
    def at_unix_seconds(self) -> float:
        """The moment that is shown."""
        return self.fleet.at_unix_seconds if self.verdict is None else self.verdict.sample.at_unix_seconds


def read(source: QuerySource, scope: Scope, wanted: Wanted, before: Reading | None) -> Reading:
    """Two or three queries, one after the other. Raises SourceError."""
    span = strip_span(wanted, before.span if before is not None else None)
    if wanted.node is None or before is None:
        fleet = look(source, scope, wanted.when)
        return Reading(fleet, span, look_back(source, scope, *span, STRIP_CELLS))
    node, found = wanted.node, None
    if node.origin != "sglang":
        found = look_at_node(source, scope, node.instance, wanted.when)
    verdict = found or bare_verdict(node, wanted.now if wanted.when is None else wanted.when)
    changes = look_back(source, scope, *span, STRIP_CELLS, node.instance)
    return Reading(before.fleet, span, changes, node, verdict)


def strip_span(wanted: Wanted, before: tuple[float, float] | None) -> tuple[float, float]:
    """Live it ends now; away from live it stays where it is while the moment is inside it."""
    length = wanted.span_seconds
    if wanted.when is None:
        return wanted.now - length, wanted.now
    if before is not None and before[0] <= wanted.when <= before[1] and abs(before[1] - before[0] - length) < 1:
        return before
    end = min(wanted.now, wanted.when + length / 2)
    return end - length, end
