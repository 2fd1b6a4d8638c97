"""From a recording to its page."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.reconcile import Reconciler, Verdict
from ranktop.recording.errors import RecordingError
from ranktop.recording.findings import FindingHistory
from ranktop.recording.reader import Recording
from ranktop.recording.report.charts import charts, episodes
from ranktop.recording.report.page import page

MAX_POINTS = 2000
"""Points of a chart. A day at 1 Hz is thinned to one sample in 44; findings are those that the recorder saw."""


def report(recording: Recording, reconciler: Reconciler) -> str:
    """The page as HTML. RecordingError when the recording holds no readable sample."""
    verdicts = list(_judged(recording, reconciler))
    if not verdicts:
        raise RecordingError(f"{recording.path}: holds no readable sample")
    times, drawn = charts(verdicts)
    notes = recording.events()
    return page(recording, verdicts[-1], times, drawn, episodes(FindingHistory(notes)), notes)


def _judged(recording: Recording, reconciler: Reconciler) -> Iterator[Verdict]:
    index = recording.index
    step = max(1, -(-index.count // MAX_POINTS))
    if step == 1:
        for recorded in recording.samples():
            yield reconciler.update(recorded.sample)
        return
    wanted = {index.seq(position) for position in (*range(0, index.count, step), index.count - 1)}
    for seq in sorted(wanted):
        for recorded in recording.samples(seq, seq):
            yield reconciler.update(recorded.sample)
