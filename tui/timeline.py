"""Going back in time: the same keys over the last quarter of an hour live, and over a whole recording."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from ranktop.finding import Severity, worst
from ranktop.reconcile.verdict import Verdict
from tui.packed import packed, unpacked

LIVE_SECONDS = 900
_ALIKE = 60
"""So many verdicts are kept against the first of them: later ones are less like it."""
LIVE_BYTES = 48 * 1024 * 1024
"""Many times what eight ranks take: a node of hundreds of ranks goes back less far instead of growing without end."""


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


class _Kept(NamedTuple):
    """One verdict. `first` is shared by those that are packed against it, and goes with the last of them."""

    at: float
    first: bytes
    data: bytes


class LiveTimeline:
    """The last `LIVE_SECONDS` verdicts, compressed: exactly what was shown, at about 3 kB a second of eight ranks.

    The pages behind a verdict are left out of it: what was derived from them is in the verdict.
    """

    def __init__(self, seconds: int = LIVE_SECONDS, most_bytes: int = LIVE_BYTES) -> None:
        self._seconds = seconds
        self._most_bytes = most_bytes
        self.kept_bytes = 0
        self._kept: deque[_Kept] = deque()
        self._first, self._first_packed, self._alike = b"", b"", 0
        self._marks: deque[Mark] = deque()
        self._encoder = msgspec.msgpack.Encoder()

    def push(self, verdict: Verdict) -> None:
        """Keep one verdict."""
        at = verdict.sample.at_unix_seconds
        slim = replace(verdict, sample=replace(verdict.sample, metrics={}, mappings={}, infos={}))
        text = self._encoder.encode(slim)
        if self._alike % _ALIKE == 0:
            self._first, self._first_packed, self._alike = text, packed(text, b""), 0
            self.kept_bytes += len(self._first_packed)
        self._alike += 1
        self._kept.append(_Kept(at, self._first_packed, packed(text, self._first)))
        self.kept_bytes += len(self._kept[-1].data)
        while len(self._kept) > self._seconds or (self.kept_bytes > self._most_bytes and len(self._kept) > 1):
            self._drop_oldest()
        severity = worst(verdict.findings)
        loud = severity if severity != "info" else None
        if not self._marks or self._marks[-1].severity != loud:
            self._marks.append(Mark(at, loud))
        # The last change before the span still says how the span begins.
        while len(self._marks) > 1 and self._marks[1].at <= self._kept[0].at:
            self._marks.popleft()

    def span(self) -> tuple[float, float] | None:
        return (self._kept[0].at, self._kept[-1].at) if self._kept else None

    def at(self, when: float) -> Verdict | None:
        if not self._kept:
            return None
        place = bisect_right([one.at for one in self._kept], when) - 1
        kept = self._kept[max(0, place)]
        # A decoder made beforehand would look through fifty classes before the first paint.
        return msgspec.msgpack.decode(unpacked(kept.data, unpacked(kept.first, b"")), type=Verdict)

    def marks(self) -> Sequence[Mark]:
        return tuple(self._marks)

    def _drop_oldest(self) -> None:
        gone = self._kept.popleft()
        self.kept_bytes -= len(gone.data)
        if self._kept[0].first is not gone.first:
            self.kept_bytes -= len(gone.first)


LOUD: tuple[Severity, ...] = ("breach", "critical")


def next_breach(marks: Sequence[Mark], when: float) -> float | None:
    """When the next breach opens after `when`."""
    return next((mark.at for mark in marks if mark.at > when and mark.severity in LOUD), None)


def previous_breach(marks: Sequence[Mark], when: float) -> float | None:
    """When the breach before `when` opened."""
    return next((mark.at for mark in reversed(marks) if mark.at < when and mark.severity in LOUD), None)
