"""Things that happen once: log lines kept, phases, kernel messages, marks."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Event(Struct, frozen=True):
    """One thing that happened. `kind` names the parser's family, `fields` its values (units in the names)."""

    at_unix_seconds: float
    kind: str
    text: str
    server: str | None = None
    rank: str | None = None
    fields: dict[str, Any] = {}
    source: str = "logged"
