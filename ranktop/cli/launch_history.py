"""Launches of earlier runs of ranktop: fed to the reconciler, brought up to date afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from ranktop.cli.launch_state import load_launches, save_launches, state_path
from ranktop.reconcile.launches import Launch, extend


def remembered() -> tuple[Launch, ...]:
    """The launches of the state file, oldest first of each server."""
    return load_launches(state_path())


def remember(launches: Iterable[Launch]) -> None:
    """Add launches to the state file; what another ranktop has added meanwhile is kept.

    A file that cannot be written costs the next run its comparison, and nothing else.
    """
    before = remembered()
    by_server: dict[str, tuple[Launch, ...]] = {}
    for launch in sorted((*before, *launches), key=lambda one: one.started_unix_seconds):
        by_server[launch.server] = extend(by_server.get(launch.server, ()), launch)
    merged = tuple(launch for known in by_server.values() for launch in known)
    if sorted(merged, key=_order) != sorted(before, key=_order):
        with suppress(OSError):
            save_launches(state_path(), merged)


def _order(launch: Launch) -> tuple[str, float]:
    return launch.server, launch.started_unix_seconds
