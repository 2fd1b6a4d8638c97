"""From a recording to its page."""

from __future__ import annotations

from ranktop.reconcile import Reconciler
from ranktop.recording.episodes import episodes
from ranktop.recording.errors import RecordingError
from ranktop.recording.findings import FindingHistory
from ranktop.recording.reader import Recording
from ranktop.recording.report.charts import charts
from ranktop.recording.report.page import page
from ranktop.recording.thinned import thinned


def report(recording: Recording, reconciler: Reconciler) -> str:
    """The page as HTML. RecordingError when the recording holds no readable sample."""
    verdicts = [verdict for _, verdict in thinned(recording, reconciler)]
    if not verdicts:
        raise RecordingError(f"{recording.path}: holds no readable sample")
    times, drawn = charts(verdicts)
    notes = recording.events()
    return page(recording, verdicts[-1], times, drawn, episodes(FindingHistory(notes)), notes)
