"""Recorded samples judged as the live ones were: by the same reconciler, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ranktop.finding import Finding
from ranktop.reconcile import Reconciler, Verdict
from ranktop.recording.findings import FindingHistory, key_of
from ranktop.recording.reader import Recording

WARM_SAMPLES = 120
"""After a jump so many samples before it are judged first: rates, trends and durations need their past."""

MAX_CATCH_UP_SAMPLES = 300
"""A step forward of more than that is a jump."""


PAST_SAMPLES, PAST_STEP = 900, 15
"""What charts show of the time before a jump: a quarter of an hour, beyond the warm-up one sample in fifteen."""


class Way(NamedTuple):
    """How one came to the sample that is shown: the verdicts on the way, its own last; none when it is the same one."""

    verdicts: Sequence[Verdict] = ()
    is_jump: bool = False


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
        self._began_at = 0
        self.way = Way()

    def verdict(self, seq: int, history: FindingHistory | None = None) -> Verdict | None:
        """The verdict on that sample; None when it cannot be read. `history`: what the recorder found."""
        if seq == self._last_seq:
            self.way = Way()
            return self._verdict
        position, last = (self._recording.index.position(number) for number in (seq, self._last_seq))
        ahead = position - last
        is_jump = self._last_seq == 0 or not 0 < ahead <= MAX_CATCH_UP_SAMPLES
        if is_jump:
            self._began_at = max(position - WARM_SAMPLES, 0)
            first = self._recording.index.seq(self._began_at)
            self._reconciler = self._make()
            self._jumped = position > WARM_SAMPLES
        else:
            first = self._last_seq + 1
        passed = [(one.seq, self._reconciler.update(one.sample)) for one in self._recording.samples(first, seq)]
        self._last_seq = seq
        self._verdict = passed[-1][1] if passed and passed[-1][0] == seq else None
        if self._verdict is not None and self._jumped and history is not None:
            self._verdict = _with_recorded_since(self._verdict, history.open_at(seq))
        before = [verdict for number, verdict in passed if number != seq]
        self.way = Way([*before, self._verdict] if self._verdict is not None else before, is_jump)
        return self._verdict

    def earlier(self) -> Iterator[Verdict]:
        """Verdicts on the time before the warm-up of the last jump, `PAST_STEP` samples apart: for charts alone."""
        reconciler, index = self._make(), self._recording.index
        for place in range(max(self._began_at + WARM_SAMPLES - PAST_SAMPLES, 0), self._began_at, PAST_STEP):
            seq = index.seq(place)
            for recorded in self._recording.samples(seq, seq):
                yield reconciler.update(recorded.sample)


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
