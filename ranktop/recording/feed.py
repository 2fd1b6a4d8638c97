"""A recording as a feed: time runs, stands, steps and jumps; a file that is still written grows under it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import takewhile

from ranktop.finding import Severity
from ranktop.reconcile import Reconciler, Verdict
from ranktop.recording.errors import Damaged, RecordingError, way_out
from ranktop.recording.findings import Change, Differences, FindingHistory, differences
from ranktop.recording.judge import ReplayJudge, Way
from ranktop.recording.notes import MARK, OPENED, PLAN, Note
from ranktop.recording.reader import Recording
from ranktop.sample import Sample

MIN_SPEED, MAX_SPEED = 0.25, 64.0
MAX_DAMAGED_IN_A_ROW = 7200
"""Samples that are skipped in search of a readable one: two chunks of the largest size."""

_LOOK_EVERY_SECONDS = 1.0


class RecordingFeed:
    """A `SampleFeed` and a `TimeControl` over one recording; used by one thread.

    RecordingError when the recording holds no readable sample.
    """

    def __init__(
        self,
        recording: Recording,
        make_reconciler: Callable[[], Reconciler],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recording = recording
        self._judge = ReplayJudge(recording, make_reconciler)
        self._monotonic = monotonic
        self._speed = 1.0
        self._is_playing = False
        self._clock = 0.0
        self._moved_at = self._looked_at = monotonic()
        self._sample: Sample | None = None
        self._read_events()
        if not recording.index.count:
            raise RecordingError(f"{recording.path}: holds no sample")
        self._go(recording.index.seq(0), direction=1)

    def start(self) -> None:
        """Let time run from where it stands."""
        self.play()

    def stop(self) -> None:
        """Let go of the file."""
        self._recording.close()

    @property
    def seq(self) -> int:
        """The number of the sample that is shown."""
        return self._seq

    @property
    def is_playing(self) -> bool:
        return self._is_playing

    @property
    def speed(self) -> float:
        return self._speed

    @property
    def now(self) -> float | None:
        return self._sample.at_unix_seconds if self._sample else None

    def sample(self) -> Sample:
        """The sample at the time that the replay has reached."""
        self._follow()
        if self._is_playing:
            self._run()
        assert self._sample is not None
        return self._sample

    def judge(self, sample: Sample) -> Verdict:
        """The verdict on the sample that is shown. `sample` is the one that `sample()` gave."""
        verdict = self._judge.verdict(self._seq, self.history)
        assert verdict is not None
        return verdict

    @property
    def way(self) -> Way:
        """The verdicts between the sample that was shown before and this one."""
        return self._judge.way

    def earlier(self) -> Iterator[Verdict]:
        """The time before a jump, for charts: `ReplayJudge.earlier`."""
        return self._judge.earlier()

    def differences(self, verdict: Verdict) -> Differences:
        """Where this replay finds other things than the recorder did; none when nobody judged while it was recorded."""
        if not self._was_judged:
            return Differences((), ())
        return differences(self.history.open_at(self._seq), verdict.findings)

    def span(self) -> tuple[float, float] | None:
        spans = self._recording.index.spans
        return (spans[0].t0, spans[-1].t1) if spans else None

    def play(self, speed: float | None = None) -> None:
        if speed is not None:
            self._speed = min(max(speed, MIN_SPEED), MAX_SPEED)
        self._is_playing = True
        self._moved_at = self._monotonic()
        self._clock = self.now or 0.0

    def pause(self) -> None:
        self._is_playing = False

    def step(self, samples: int) -> None:
        self.pause()
        index = self._recording.index
        self._go(index.seq(index.position(self._seq) + samples), direction=1 if samples >= 0 else -1)

    def seek(self, at_unix_seconds: float) -> None:
        self.go_to(self._recording.seq_at(at_unix_seconds))

    def go_to(self, seq: int) -> None:
        """Show that sample, or the nearest readable one after it."""
        self._go(seq, direction=1)
        if self._is_playing:
            self.play()

    def changes(self) -> list[tuple[float, Severity | None]]:
        """Changes of the worst severity above info, over the whole recording."""
        return self.history.severities()

    def next_breach(self) -> bool:
        """To the sample at which the next breach opened. False when there is none, and nothing moves."""
        return self._go_to_change(next((change for change in self._breaches if change.seq > self._seq), None))

    def previous_breach(self) -> bool:
        """To the sample at which the breach before this moment opened."""
        before = list(takewhile(lambda change: change.seq < self._seq, self._breaches))
        return self._go_to_change(before[-1] if before else None)

    def _go_to_change(self, change: Change | None) -> bool:
        if change is None:
            return False
        self.pause()
        self._go(change.seq, direction=1)
        return True

    def _run(self) -> None:
        now = self._monotonic()
        self._clock += (now - self._moved_at) * self._speed
        self._moved_at = now
        index = self._recording.index
        target = self._recording.seq_at(self._clock)
        if index.position(target) <= index.position(self._seq):
            # The clock of the node was set back, or the next sample is not due yet: then the next one decides.
            target = self._due_next() or self._seq
        if target != self._seq:
            self._go(target, direction=1)

    def _due_next(self) -> int | None:
        index = self._recording.index
        following = index.seq(index.position(self._seq) + 1)
        if following == self._seq:
            return None
        try:
            sample = self._recording.sample(following)
        except Damaged:
            return following
        stepped_back = self._sample is not None and sample.at_unix_seconds < self._sample.at_unix_seconds
        if stepped_back:
            self._clock = sample.at_unix_seconds
        return following if stepped_back else None

    def _go(self, seq: int, direction: int) -> None:
        """Show a sample, or the nearest readable one in that direction, then in the other."""
        index = self._recording.index
        position = index.position(seq)
        ahead = range(position, position + direction * MAX_DAMAGED_IN_A_ROW, direction)
        behind = range(position - direction, position - direction * MAX_DAMAGED_IN_A_ROW, -direction)
        for place in (*ahead, *behind):
            if not 0 <= place < index.count:
                continue
            number = index.seq(place)
            try:
                self._sample = self._recording.sample(number)
            except Damaged:
                continue
            self._seq = number
            self._clock = self._sample.at_unix_seconds if not self._is_playing else self._clock
            return
        path, why = self._recording.path, f"no readable sample near number {seq}"
        raise RecordingError(f"{path}: {why}" + ("" if self._recording.is_salvaged else f" ({way_out(path)})"))

    def _follow(self) -> None:
        now = self._monotonic()
        if now - self._looked_at < _LOOK_EVERY_SECONDS:
            return
        self._looked_at = now
        if self._recording.refresh():
            self._read_events()

    def _read_events(self) -> None:
        notes = self._recording.events()
        self.marks: list[Note] = [note for note in notes if note.kind == MARK]
        self.history = FindingHistory(notes)
        self._was_judged = any(note.kind in (OPENED, PLAN) for note in notes)
        self._breaches = self.history.breaches()
