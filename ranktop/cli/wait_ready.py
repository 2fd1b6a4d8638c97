"""Waiting until every server of this node is ready, or has failed to become so."""

from __future__ import annotations

import time
from collections.abc import Callable

from ranktop.finding import Finding
from ranktop.reconcile import Reconciler, Verdict
from ranktop.sample import SampleFeed

_STEP_SECONDS = 1.0
_SETTLE_UPDATES = 4
"""What was open while a server loaded (nothing listens yet) closes after three clear updates."""
_HOPELESS = frozenset({"RANK-DEAD", "HOST-OOM-KILL", "GPU-LOST"})
"""A server with one of these at `critical` will not get ready any more."""


def wait_ready(
    feed: SampleFeed,
    reconciler: Reconciler,
    seconds: float,
    tell: Callable[[str], None],
    step_seconds: float = _STEP_SECONDS,
) -> str | None:
    """None once all servers are ready, else why they are not. `tell` gets a line when a server reaches another phase.

    Ends early when something happens after which waiting is of no use.
    """
    deadline = time.monotonic() + seconds
    told: dict[str, str] = {}
    ready_updates = 0
    while True:
        verdict = reconciler.update(feed.sample())
        for server, phase in newest_phases(verdict).items():
            if told.get(server) != phase:
                told[server] = phase
                tell(f"{server}: {phase}")
        if is_ready(verdict):
            ready_updates += 1
            if ready_updates > _SETTLE_UPDATES:
                return None
        end = hopeless(verdict)
        if end is not None:
            return f"{end.code}: {end.message}"
        if time.monotonic() >= deadline and not is_ready(verdict):
            waiting = [f"{one.id} ({told.get(one.id, 'nothing seen')})" for one in verdict.servers if not one.is_ready]
            return f"not ready in time: {', '.join(waiting) or 'no server started'}"
        time.sleep(step_seconds)


def is_ready(verdict: Verdict) -> bool:
    """All servers that are there, and at least one."""
    return bool(verdict.servers) and all(server.is_ready for server in verdict.servers)


def newest_phases(verdict: Verdict) -> dict[str, str]:
    """By server: the phase that was reached last."""
    return {phase.server: phase.phase for phase in sorted(verdict.phases, key=lambda one: one.at_unix_seconds)}


def hopeless(verdict: Verdict) -> Finding | None:
    """The finding after which no waiting helps."""
    return next((one for one in verdict.findings if one.code in _HOPELESS and one.severity == "critical"), None)
