"""What the fleet asks of a Prometheus server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Row(NamedTuple):
    """One series of an answer with its value at the asked moment."""

    labels: dict[str, str]
    value: float


class Track(NamedTuple):
    """One series over time: (Unix seconds, value), oldest first."""

    labels: dict[str, str]
    points: tuple[tuple[float, float], ...]


class Answer(NamedTuple):
    """Rows, and what the server said against their completeness (Thanos and Mimir: partial responses)."""

    rows: tuple[Row, ...]
    warnings: tuple[str, ...] = ()


class QuerySource(Protocol):
    """A Prometheus server, or whatever speaks its HTTP API. Both raise `SourceError`; neither tries again by itself."""

    def instant(self, query: str, at_unix_seconds: float | None = None) -> Answer:
        """The value of every series now, or at that time. NaN and infinity are left out."""
        ...

    def over(self, query: str, start: float, end: float, step_seconds: float) -> Sequence[Track]:
        """The values from start to end, whole seconds, a point a step."""
        ...
