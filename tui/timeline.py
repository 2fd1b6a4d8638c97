"""Going back in time: the same keys over the last quarter of an hour live, and over a whole recording."""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import zstandard
from msgspec.structs import replace

from ranktop.finding import Severity, worst
from ranktop.reconcile.verdict import Verdict
from ranktop.recording.packed import dictionary
from ranktop.sample import Sample

LIVE_SECONDS = 900
_RUNS = 30
"""The span is kept in so many runs: a verdict is much like the first one of its run."""
_LEVEL = 2
"""Of zstd: with 1 verdicts of 64 ranks are twice as large for the same time, 3 takes twice the memory."""
RANKS_EVERY_SECOND = 32
"""Of so many ranks every verdict is kept, of twice as many every second one, down to one in `_MOST_SECONDS`: what it
takes to keep one grows with its ranks. The first of another severity always is."""
_MOST_SECONDS = 10
LIVE_BYTES = 48 * 1024 * 1024
"""Many times what eight ranks take: a node of hundreds of ranks goes back less far instead of growing without end."""


class Mark(NamedTuple):
    """When the worst severity of the node changed, and to what (None: nothing above info)."""

    at: float
    severity: Severity | None


class _Run:
    """Some verdicts one after the other: the first of them alone, the others with it as their dictionary."""

    def __init__(self) -> None:
        self.pushed = 0
        """Verdicts that it stands for, kept or not."""
        self.times: list[float] = []
        self.kept_bytes = 0
        self._frames: list[bytes] = []

    def add(self, at: float, frame: bytes) -> None:
        self.times.append(at)
        self._frames.append(frame)
        self.kept_bytes += len(frame)

    def at(self, when: float) -> Verdict:
        """The newest verdict not after `when`; the first one when all are after."""
        told = zstandard.ZstdDecompressor().decompress(self._frames[0])
        place = bisect_right(self.times, when) - 1
        if place > 0:
            told = zstandard.ZstdDecompressor(dict_data=dictionary(told)).decompress(self._frames[place])
        return _decoder().decode(told)


class LiveTimeline:
    """The last `LIVE_SECONDS` verdicts and up to a thirtieth more, compressed: exactly what was shown.

    Of a node of many ranks not every one: see `RANKS_EVERY_SECOND`. Pages, maps and the readings of GPUs are left out
    of a verdict: what was derived from them is in it.
    """

    def __init__(self, seconds: int = LIVE_SECONDS, most_bytes: int = LIVE_BYTES) -> None:
        self._seconds = seconds
        self._run = max(1, seconds // _RUNS)
        self._most_bytes = most_bytes
        self._runs: deque[_Run] = deque()
        self._newest: Verdict | None = None
        self._marks: deque[Mark] = deque()
        self._encoder = msgspec.msgpack.Encoder()
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)
        """With the first verdict of the newest run as its dictionary."""

    @property
    def kept_bytes(self) -> int:
        return sum(run.kept_bytes for run in self._runs)

    def push(self, verdict: Verdict) -> None:
        """Keep one verdict."""
        at = verdict.sample.at_unix_seconds
        severity = worst(verdict.findings)
        loud = severity if severity != "info" else None
        is_news = not self._marks or self._marks[-1].severity != loud
        if is_news:
            self._marks.append(Mark(at, loud))
        self._newest = replace(verdict, sample=_without_readings(verdict.sample))
        self._keep(at, self._newest, is_news)
        while len(self._runs) > 1 and self._has_a_spare_run():
            self._runs.popleft()
        # The last change before the span still says how the span begins.
        while len(self._marks) > 1 and self._marks[1].at <= self._runs[0].times[0]:
            self._marks.popleft()

    def _keep(self, at: float, verdict: Verdict, is_news: bool) -> None:
        run = self._runs[-1] if self._runs else None
        if run is None or run.pushed >= self._run or 4 * run.kept_bytes > self._most_bytes:
            run = _Run()
            self._runs.append(run)
            told = self._encoder.encode(verdict)
            run.add(at, zstandard.ZstdCompressor(level=_LEVEL).compress(told))
            self._compressor = zstandard.ZstdCompressor(level=_LEVEL, dict_data=dictionary(told))
        else:
            every = max(1, min(_MOST_SECONDS, -(-len(verdict.ranks) // RANKS_EVERY_SECOND)))
            if is_news or run.pushed % every == 0:
                run.add(at, self._compressor.compress(self._encoder.encode(verdict)))
        run.pushed += 1

    def span(self) -> tuple[float, float] | None:
        """First and last moment that can be shown, in Unix seconds; None before the first."""
        return (self._runs[0].times[0], self._newest.sample.at_unix_seconds) if self._runs and self._newest else None

    def at(self, when: float) -> Verdict | None:
        """The newest verdict not after `when` (Unix seconds); the first one when all are after."""
        if not self._runs or self._newest is None:
            return None
        if when >= self._newest.sample.at_unix_seconds:
            return self._newest
        earlier = [run for run in self._runs if run.times[0] <= when]
        return (earlier[-1] if earlier else self._runs[0]).at(when)

    def marks(self) -> Sequence[Mark]:
        """Changes of severity over the whole span, oldest first."""
        return tuple(self._marks)

    def _has_a_spare_run(self) -> bool:
        """Whether what is left without the oldest one is enough, or with it too much."""
        later = sum(run.pushed for run in self._runs) - self._runs[0].pushed
        return later >= self._seconds or self.kept_bytes > self._most_bytes


def _without_readings(sample: Sample) -> Sample:
    gpus = sample.gpus and replace(sample.gpus, gpus=())
    return replace(sample, metrics={}, mappings={}, infos={}, gpus=gpus)


@functools.cache
def _decoder() -> msgspec.msgpack.Decoder[Verdict]:
    """Made when somebody goes back: it looks through fifty classes, for which nobody waits before the first paint."""
    return msgspec.msgpack.Decoder(Verdict)


LOUD: tuple[Severity, ...] = ("breach", "critical")


def next_breach(marks: Sequence[Mark], when: float) -> float | None:
    """When the next breach opens after `when`."""
    return next((mark.at for mark in marks if mark.at > when and mark.severity in LOUD), None)


def previous_breach(marks: Sequence[Mark], when: float) -> float | None:
    """When the breach before `when` opened."""
    return next((mark.at for mark in reversed(marks) if mark.at < when and mark.severity in LOUD), None)
