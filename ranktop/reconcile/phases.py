"""Where a server is between its launch and steady work, from its log and from readiness.

Log kinds: `collectors/serverlog_lines.py`. A rank's log tells its own phases; ready, first_prefill, steady and
stopping belong to the whole server (rank None).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ranktop.reconcile.verdict import Phase, ServerVerdict
from ranktop.sample import Event, Sample

PHASES = ("start", "weights", "pool", "graphs", "host_pools", "ready", "first_prefill", "steady", "stopping")
"""In the order in which SGLang reaches them: weights loaded, pool allocated, graphs captured, host pools allocated."""

STEADY_AFTER_SECONDS = 300.0
"""Workspaces and allocator caches have grown by then (own judgement)."""

_KINDS = {
    "server_args": "start",
    "weights_end": "weights",
    "l1_pool": "pool",
    "memory_pool_end": "pool",
    "graph_end": "graphs",
    "host_pool": "host_pools",
    "host_indexer": "host_pools",
    "ready": "ready",
    "prefill_batch": "first_prefill",
    "signal": "stopping",
}
_FIRST_COUNTS = frozenset({"ready", "first_prefill"})
_OF_SERVER = frozenset({"start", "ready", "first_prefill", "steady", "stopping"})


class ServerPhases(Struct, frozen=True, dict=True):
    """Phases of one server's newest start. `main` is its main process's start ticks, None where there is none."""

    main: int | None
    reached: Mapping[tuple[str, str | None], Phase] = {}
    """By phase and rank."""

    def current(self, rank: str) -> str:
        """The furthest phase that the rank or its server has reached."""
        furthest = self._furthest
        return furthest[rank] if rank in furthest else furthest[None]

    @functools.cached_property
    def _furthest(self) -> dict[str | None, str]:
        """By rank, its server's phases among its own; None is the server."""
        furthest: dict[str | None, str] = {None: "start"}
        for name, rank in self.reached:
            furthest[rank] = max(name, furthest.get(rank, "start"), key=PHASES.index)
        return {rank: max(phase, furthest[None], key=PHASES.index) for rank, phase in furthest.items()}


def follow_phases(
    known: Mapping[str, ServerPhases], sample: Sample, servers: Sequence[ServerVerdict]
) -> dict[str, ServerPhases]:
    """The phases after this sample, by server."""
    mains = {server.id: server.start_ticks for server in sample.processes.servers} if sample.processes else {}
    events: dict[str, list[Event]] = {}
    for event in sample.events:
        if event.server is not None and event.kind in _KINDS:
            events.setdefault(event.server, []).append(event)
    return {
        server.id: _follow(
            known.get(server.id), mains.get(server.id), server, events.get(server.id, []), sample.at_unix_seconds
        )
        for server in servers
    }


def phase_list(known: Mapping[str, ServerPhases]) -> tuple[Phase, ...]:
    """All phases reached, oldest first."""
    reached = [phase for server in known.values() for phase in server.reached.values()]
    return tuple(
        sorted(reached, key=lambda phase: (phase.at_unix_seconds, PHASES.index(phase.phase), phase.rank or ""))
    )


def _follow(
    before: ServerPhases | None, main: int | None, server: ServerVerdict, events: Sequence[Event], now: float
) -> ServerPhases:
    is_new = before is None
    if before is None or (main is not None and before.main is not None and main != before.main):
        before = ServerPhases(main)
    reached = dict(before.reached)
    for event in events:
        _reach(reached, event, server.id)
    if server.is_ready:
        # A server that is ready when it is first seen was so before.
        reached.setdefault(("ready", None), Phase("ready", now, server.id, source="reported", at_or_before=is_new))
    if _works(server):
        ready = reached.get(("ready", None))
        before_us = ready is not None and ready.at_or_before and ready.at_unix_seconds == now
        reached.setdefault(
            ("first_prefill", None),
            Phase("first_prefill", now, server.id, source="reported", at_or_before=before_us),
        )
    first = reached.get(("first_prefill", None))
    if first is not None and ("steady", None) not in reached:
        wait = 0.0 if first.at_or_before else STEADY_AFTER_SECONDS
        if now - first.at_unix_seconds >= wait:
            at = first.at_unix_seconds + wait
            reached["steady", None] = Phase("steady", at, server.id, source="inferred", at_or_before=first.at_or_before)
    main = main if main is not None else before.main
    if main == before.main and reached == before.reached:
        return before
    return ServerPhases(main, reached)


def _reach(reached: dict[tuple[str, str | None], Phase], event: Event, server: str) -> None:
    name = _KINDS[event.kind]
    if name == "start":
        logged = (phase.at_unix_seconds for phase in reached.values() if phase.source == "logged")
        # The launch before this one, read late from an old log, is no new start.
        if event.at_unix_seconds < max(logged, default=0.0):
            return
        for key in [key for key, phase in reached.items() if phase.at_unix_seconds < event.at_unix_seconds]:
            del reached[key]
    rank = None if name in _OF_SERVER else event.rank
    if name in _FIRST_COUNTS:
        known = reached.get((name, rank))
        if known is not None and known.source == "logged":
            return
        # The log, which may be read later, knows the time better than when ranktop first looked.
        reached.pop(("steady", None), None)
    reached[name, rank] = Phase(name, event.at_unix_seconds, server, rank, source="logged")


def _works(server: ServerVerdict) -> bool:
    return bool(server.is_ready and server.service.running)
