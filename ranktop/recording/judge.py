"""Recorded samples judged as the live ones were: by the same reconciler, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from ranktop.finding import Finding
from ranktop.reconcile import Reconciler, Verdict
from ranktop.recording.findings import FindingHistory, key_of
from ranktop.recording.reader import Recording

WARM_SAMPLES = 120
"""After a jump so many samples before it are judged first: rates, trends and durations need their past."""

MAX_CATCH_UP_SAMPLES = 300
"""A step forward of more than that is a jump."""


class ReplayJudge:
    """Verdicts by sample number. Going on from one to the next is exact; after a jump the past is warmed up.

    A jump cannot judge hours again: there `since` of a finding is taken from what the recorder saw.
    """

    def __init__(self, recording: Recording, make_reconciler: Callable[[], Reconciler]) -> None:
        self._recording = recording
        self._make = make_reconciler
        self._reconciler = make_reconciler()
        self._last_seq = 0
        self._verdict: Verdict | None = None
        self._jumped = False

    def verdict(self, seq: int, history: FindingHistory | None = None) -> Verdict | None:
        """The verdict on that sample; None when it cannot be read. `history`: what the recorder found."""
        if seq == self._last_seq:
            return self._verdict
        position, last = (self._recording.index.position(number) for number in (seq, self._last_seq))
        ahead = position - last
        if self._last_seq == 0 or not 0 < ahead <= MAX_CATCH_UP_SAMPLES:
            first = self._recording.index.seq(position - WARM_SAMPLES)
            self._reconciler = self._make()
            self._jumped = position > WARM_SAMPLES
        else:
            first = self._last_seq + 1
        self._verdict = None
        for recorded in self._recording.samples(first, seq):
            verdict = self._reconciler.update(recorded.sample)
            if recorded.seq == seq:
                self._verdict = verdict
        self._last_seq = seq
        if self._verdict is not None and self._jumped and history is not None:
            self._verdict = _with_recorded_since(self._verdict, history.open_at(seq))
        return self._verdict


def verdicts(
    recording: Recording, reconciler: Reconciler, first_seq: int | None = None, last_seq: int | None = None
) -> Iterator[tuple[int, Verdict]]:
    """(number, verdict) of every readable sample, in order. Deterministic: the same findings as live."""
    for recorded in recording.samples(first_seq, last_seq):
        yield recorded.seq, reconciler.update(recorded.sample)


def _with_recorded_since(verdict: Verdict, recorded: tuple[Finding, ...]) -> Verdict:
    since = {key_of(finding): finding.since for finding in recorded}
    findings = tuple(
        replace(finding, since=known) if (known := since.get(key_of(finding))) is not None else finding
        for finding in verdict.findings
    )
    return replace(verdict, findings=findings)
