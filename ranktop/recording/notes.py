"""What happened, as rows of `event`: a sample's own events, findings that open and close, sources, clocks, plans."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct

from ranktop.finding import Finding
from ranktop.plan.plan import Plan
from ranktop.reconcile.grouping import rank_span
from ranktop.reconcile.verdict import Verdict
from ranktop.sample import Event, Sample

SAMPLE, RECORDER = "sample", "recorder"
"""Origins: an event that the sample carries (`json` holds all of it), or one that the recorder adds."""

OPENED, CHANGED, CLOSED = "finding_opened", "finding_changed", "finding_closed"
SOURCE, CLOCK, MARK, GAP, PLAN = "source", "clock", "mark", "gap", "plan"

CLOCK_STEP_SECONDS = 2.0
"""The wall clock went this much further than the monotonic one: a step, or the machine slept."""


class Note(Struct, frozen=True):
    """One row of `event` without its id and checksum."""

    seq: int
    at_unix_seconds: float
    origin: str
    kind: str
    severity: str | None = None
    server: str | None = None
    rank: str | None = None
    code: str | None = None
    text: str = ""
    json: str | None = None

    def columns(self) -> tuple[Any, ...]:
        """In the order of `tables.EVENT`."""
        return msgspec.structs.astuple(self)


def of_sample(seq: int, event: Event) -> Note:
    """An event of the sample with that number."""
    return Note(
        seq,
        event.at_unix_seconds,
        SAMPLE,
        event.kind,
        server=event.server,
        rank=event.rank,
        text=event.text,
        json=_json(event),
    )


def mark(seq: int, at_unix_seconds: float, text: str) -> Note:
    """A mark that somebody set."""
    return Note(seq, at_unix_seconds, RECORDER, MARK, text=text)


def gap(seq: int, at_unix_seconds: float, text: str) -> Note:
    """Samples that were not recorded."""
    return Note(seq, at_unix_seconds, RECORDER, GAP, severity="warn", text=text)


_state_of = attrgetter("name", "server", "state", "code")


class Notary:
    """Compares each sample with the one before it."""

    def __init__(self) -> None:
        self._clocks: tuple[float, float] | None = None
        self._states: list[tuple[str, str | None, str, str]] = []
        self._sources: dict[tuple[str, str | None], tuple[str, str]] = {}
        self._open: dict[tuple[str, str | None, str], Finding] = {}
        self._told_at: dict[tuple[str, str | None, str], int] = {}
        self._plans: dict[str, tuple[Plan | None, str | None, str | None]] = {}

    def notes(self, seq: int, sample: Sample, verdict: Verdict | None) -> list[Note]:
        """All rows of this sample, the sample's own events first."""
        found = [of_sample(seq, event) for event in sample.events]
        found.extend(self._clock(seq, sample))
        states = list(map(_state_of, sample.sources))
        # As nearly always: then nobody asks source by source.
        if states != self._states:
            self._states = states
            found.extend(self._changed_sources(seq, sample))
        if verdict is not None:
            found.extend(self._findings(seq, verdict))
            found.extend(self._changed_plans(seq, verdict))
        return found

    def told_again(self, first_seq: int, at_unix_seconds: float) -> list[Note]:
        """Rows for findings that are open and whose own row is dropped with all samples before that one."""
        lost = [key for key in self._open if self._told_at[key] < first_seq]
        self._told_at |= dict.fromkeys(lost, first_seq)
        return [_finding(first_seq, at_unix_seconds, OPENED, self._open[key]) for key in lost]

    def _clock(self, seq: int, sample: Sample) -> Iterator[Note]:
        before, now = self._clocks, (sample.at_unix_seconds, sample.at_monotonic_seconds)
        self._clocks = now
        if before is None:
            return
        step = (now[0] - before[0]) - (now[1] - before[1])
        if abs(step) >= CLOCK_STEP_SECONDS:
            words = "the clock went back, or was set" if step < 0 else "the clock was set, or the machine slept"
            text = f"wall clock {step:+.1f} s against the monotonic clock: {words}"
            yield Note(seq, now[0], RECORDER, CLOCK, severity="info", text=text, json=_json({"step_seconds": step}))

    def _changed_sources(self, seq: int, sample: Sample) -> Iterator[Note]:
        for source in sample.sources:
            key, state = (source.name, source.server), (source.state, source.code)
            before = self._sources.get(key)
            if state != before:
                self._sources[key] = state
                was = " ".join(before).strip() if before else "not there"
                text = f"{source.name}: {was} -> {' '.join(state).strip()}" + (
                    f": {source.detail}" if source.detail else ""
                )
                yield Note(
                    seq, sample.at_unix_seconds, RECORDER, SOURCE, server=source.server, code=source.name, text=text
                )

    def _findings(self, seq: int, verdict: Verdict) -> Iterator[Note]:
        at = verdict.sample.at_unix_seconds
        now = {(finding.code, finding.server, finding.scope): finding for finding in verdict.findings}
        self._told_at |= dict.fromkeys(now.keys() - self._open.keys(), seq)
        for key, finding in now.items():
            before = self._open.get(key)
            if before is None:
                yield _finding(seq, at, OPENED, finding)
            elif (before.severity, before.ranks) != (finding.severity, finding.ranks):
                yield _finding(seq, at, CHANGED, finding)
        for key, finding in self._open.items():
            if key not in now:
                yield _finding(seq, at, CLOSED, finding)
        self._open = now

    def _changed_plans(self, seq: int, verdict: Verdict) -> Iterator[Note]:
        for server in verdict.servers:
            now = (server.plan, server.plan_origin, server.plan_error)
            if self._plans.get(server.id) != now:
                self._plans[server.id] = now
                text = _json({"plan": server.plan, "origin": server.plan_origin, "error": server.plan_error})
                yield Note(
                    seq,
                    verdict.sample.at_unix_seconds,
                    RECORDER,
                    PLAN,
                    server=server.id,
                    text=f"plan of {server.id} from {server.plan_origin or 'nothing'}",
                    json=text,
                )


def _finding(seq: int, at_unix_seconds: float, kind: str, finding: Finding) -> Note:
    return Note(
        seq,
        at_unix_seconds,
        RECORDER,
        kind,
        finding.severity,
        finding.server,
        rank_span(finding.ranks) or None,
        finding.code,
        finding.message,
        _json(finding),
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
