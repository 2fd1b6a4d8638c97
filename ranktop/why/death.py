"""A death and what can be said of it, each claim with how sure it is and where it comes from."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Certainty = Literal["proven", "likely", "unknown"]
Cause = Literal["out of memory", "GPU fault", "killed", "fault", "server gone"]


class Claim(Struct, frozen=True):
    """One statement. `evidence` holds its numbers, units in the names."""

    about: str
    """victim, constraint, limit, planned, grew_last, group, root, after."""
    text: str
    certainty: Certainty
    source: str | None = None
    evidence: dict[str, Any] = {}


class Death(Struct, frozen=True):
    """One event in which one or more processes ended. `at_unix_seconds` None: nothing tells when."""

    cause: Cause
    title: str
    claims: tuple[Claim, ...]
    at_unix_seconds: float | None = None
    pids: tuple[int, ...] = ()
    server: str | None = None
    rank: str | None = None
    is_sglang: bool = True
    """False: by its name another program's process."""
