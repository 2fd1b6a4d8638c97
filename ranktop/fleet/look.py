"""Asking a source: the fleet at one moment, one node of it, how bad it was over time."""

from __future__ import annotations

import time
from typing import NamedTuple

from ranktop.finding import Finding, Severity
from ranktop.fleet.across import across
from ranktop.fleet.node import node_verdict
from ranktop.fleet.queries import (
    Scope,
    node_query,
    overview_query,
    severity_query,
    sglang_query,
)
from ranktop.fleet.rows import Answers, NodeRow, by_part, exporter_rows, host_of, severity_of, sglang_rows
from ranktop.fleet.source import QuerySource
from ranktop.reconcile.verdict import Verdict


class Fleet(NamedTuple):
    """Every node at one moment. `warnings`: what the server says is missing from its answers."""

    at_unix_seconds: float
    rows: tuple[NodeRow, ...]
    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    took_seconds: float = 0.0


class Change(NamedTuple):
    """When the worst severity changed, and to what (None: nothing above info, or nothing was scraped)."""

    at_unix_seconds: float
    severity: Severity | None


def look(source: QuerySource, scope: Scope, at_unix_seconds: float | None = None) -> Fleet:
    """The overview, now or then. SGLang's own series are only read where a node has no exporter.

    Raises SourceError.
    """
    started = time.monotonic()
    warnings: dict[str, None] = {}

    def ask(query: str) -> Answers:
        answer = source.instant(query, at_unix_seconds)
        warnings.update(dict.fromkeys(answer.warnings))
        return by_part(answer.rows)

    answers = ask(overview_query(scope))
    rows = exporter_rows(answers, scope.group)
    covered = {row.host for row in rows if row.origin == "ranktop"}
    bare = [row for row in answers.get("sglang", ()) if host_of(row.labels.get("instance", "")) not in covered]
    if bare:
        rows += sglang_rows(bare, ask(sglang_query(scope)), scope.group)
    at = time.time() if at_unix_seconds is None else at_unix_seconds
    return Fleet(at, rows, across(rows), tuple(warnings), time.monotonic() - started)


def look_at_node(
    source: QuerySource, scope: Scope, instance: str, at_unix_seconds: float | None = None
) -> Verdict | None:
    """One node, rank by rank; None when its exporter was not scraped then. Raises SourceError."""
    rows = source.instant(node_query(instance, scope), at_unix_seconds).rows
    return node_verdict(rows, instance, time.time() if at_unix_seconds is None else at_unix_seconds)


def look_back(
    source: QuerySource, scope: Scope, start: float, end: float, points: int, instance: str | None = None
) -> tuple[Change, ...]:
    """The worst severity of the fleet, or of one node, over a span, never empty. Raises SourceError."""
    step = max(1.0, round((end - start) / points))
    tracks = source.over(severity_query(scope, instance), start, end, step)
    changes = [Change(start, None)]
    last: float | None = None
    for at, value in tracks[0].points if tracks else ():
        severity = severity_of(value)
        loud = None if severity == "info" else severity
        # A gap is a time when nothing was scraped, and not more of what was before it.
        if last is not None and at - last > 1.5 * step:
            changes.append(Change(last + step, None))
        if changes[-1].severity != loud:
            changes.append(Change(at, loud))
        last = at
    if last is not None and end - last > 1.5 * step and changes[-1].severity is not None:
        changes.append(Change(last + step, None))
    return tuple(changes)
