"""Going back in time: the same keys over the last quarter of an hour live, and over a whole recording."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from ranktop.finding import Severity, worst
from ranktop.reconcile.verdict import Verdict

LIVE_SECONDS = 900
LIVE_BYTES = 48 * 1024 * 1024
"""Seven times what eight ranks take: a node of hundreds of ranks goes back less far instead of growing without end."""


class Mark(NamedTuple):
    """When the worst severity of the node changed, and to what (None: nothing above info)."""

    at: float
    severity: Severity | None


class Timeline(Protocol):
    """Verdicts by time. Times are Unix seconds."""

    def span(self) -> tuple[float, float] | None:
        """First and last moment that can be shown; None before the first."""
        ...

    def at(self, when: float) -> Verdict | None:
        """The newest verdict not after `when`; the first one when all are after."""
        ...

    def marks(self) -> Sequence[Mark]:
        """Changes of severity over the whole span, oldest first."""
        ...


class LiveTimeline:
    """The last `LIVE_SECONDS` verdicts, compressed: exactly what was shown, at about 6 kB a second of eight ranks.

    The pages behind a verdict are left out of it: what was derived from them is in the verdict.
    """

    def __init__(self, seconds: int = LIVE_SECONDS, most_bytes: int = LIVE_BYTES) -> None:
        self._most_bytes = most_bytes
        self.kept_bytes = 0
        self._frames: deque[tuple[float, bytes]] = deque()
        self._seconds = seconds
        self._marks: deque[Mark] = deque()
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Verdict)

    def push(self, verdict: Verdict) -> None:
        """Keep one verdict."""
        at = verdict.sample.at_unix_seconds
        slim = replace(verdict, sample=replace(verdict.sample, metrics={}, mappings={}, infos={}))
        frame = zlib.compress(self._encoder.encode(slim), 1)
        self._frames.append((at, frame))
        self.kept_bytes += len(frame)
        while len(self._frames) > self._seconds or (self.kept_bytes > self._most_bytes and len(self._frames) > 1):
            self.kept_bytes -= len(self._frames.popleft()[1])
        severity = worst(verdict.findings)
        loud = severity if severity != "info" else None
        if not self._marks or self._marks[-1].severity != loud:
            self._marks.append(Mark(at, loud))
        # The last change before the span still says how the span begins.
        while len(self._marks) > 1 and self._marks[1].at <= self._frames[0][0]:
            self._marks.popleft()

    def span(self) -> tuple[float, float] | None:
        return (self._frames[0][0], self._frames[-1][0]) if self._frames else None

    def at(self, when: float) -> Verdict | None:
        if not self._frames:
            return None
        place = bisect_right([at for at, _ in self._frames], when) - 1
        return self._decoder.decode(zlib.decompress(self._frames[max(0, place)][1]))

    def marks(self) -> Sequence[Mark]:
        return tuple(self._marks)


LOUD: tuple[Severity, ...] = ("breach", "critical")


def next_breach(marks: Sequence[Mark], when: float) -> float | None:
    """When the next breach opens after `when`."""
    return next((mark.at for mark in marks if mark.at > when and mark.severity in LOUD), None)


def previous_breach(marks: Sequence[Mark], when: float) -> float | None:
    """When the breach before `when` opened."""
    return next((mark.at for mark in reversed(marks) if mark.at < when and mark.severity in LOUD), None)
