"""What was before the time that a live screen keeps: read from the file of a recorder on the same node."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from ranktop.finding import Severity
from ranktop.reconcile import Verdict
from ranktop.recording.errors import RecordingError
from ranktop.recording.facts import reconciler_of
from ranktop.recording.findings import FindingHistory
from ranktop.recording.judge import ReplayJudge, Way
from ranktop.recording.nearby import find_recording
from ranktop.recording.reader import Recording


class RecordedPast:
    """A recording for looks aside, as it was when it was opened; judged as its recorder did.

    Whatever goes wrong with the file, the live screen goes on without it. It is not kept open between two looks.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._judge = ReplayJudge(recording, lambda: reconciler_of(recording.meta))
        self._history = FindingHistory(recording.events())
        recording.rest()

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return os.path.basename(self._recording.path)

    @property
    def way(self) -> Way:
        """The verdicts between the moment that was asked for before and the last one."""
        return self._judge.way

    def close(self) -> None:
        """Let go of the file."""
        self._recording.close()

    def span(self) -> tuple[float, float]:
        """First and last moment of the file."""
        spans = self._recording.index.spans
        return spans[0].t0, max(span.t1 for span in spans)

    def at(self, when: float) -> Verdict | None:
        """The verdict on the newest sample not after that time; None when it cannot be read."""
        try:
            return self._judge.verdict(self._recording.seq_at(when), self._history)
        except RecordingError:
            return None
        finally:
            self._recording.rest()

    def earlier(self) -> Iterable[Verdict]:
        """The time before a jump, for charts: `ReplayJudge.earlier`."""
        try:
            return list(self._judge.earlier())
        except RecordingError:
            return ()
        finally:
            self._recording.rest()

    def changes(self) -> Sequence[tuple[float, Severity | None]]:
        """Changes of the worst severity above info, over the whole file."""
        return self._history.severities()


def open_past() -> RecordedPast | None:
    """What the recorder of this node has written by now; None when there is none that can be read."""
    path = find_recording()
    if path is None:
        return None
    try:
        recording = Recording(path)
    except RecordingError:
        return None
    try:
        if recording.index.count:
            return RecordedPast(recording)
    except (RecordingError, ValueError):
        pass
    recording.close()
    return None
