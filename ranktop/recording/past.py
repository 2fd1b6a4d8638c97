"""What was before the time that a live screen keeps: read from the file of a recorder on the same node."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import islice

from ranktop.finding import Severity
from ranktop.reconcile import Verdict
from ranktop.recording.errors import RecordingError
from ranktop.recording.facts import reconciler_of
from ranktop.recording.findings import FindingHistory
from ranktop.recording.judge import ReplayJudge, Way
from ranktop.recording.nearby import find_recordings
from ranktop.recording.reader import Recording
from ranktop.sample import Sample

_MOST_LOOKED_AT = 8
"""Files that are opened while somebody waits for the picture to stand still."""


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


def open_past(shown: Sample) -> RecordedPast | None:
    """What a recorder of this node has written by now of one of the servers that are shown; None without such a file.

    A recorder can be told to watch other servers of the same node than this screen does.
    """
    for path in islice(find_recordings(), _MOST_LOOKED_AT):
        past = _opened(path, shown)
        if past is not None:
            return past
    return None


def _opened(path: str, shown: Sample) -> RecordedPast | None:
    try:
        recording = Recording(path)
    except RecordingError:
        return None
    try:
        if recording.index.count and _is_of(recording, shown):
            return RecordedPast(recording)
    except (RecordingError, ValueError):
        pass
    recording.close()
    return None


def _is_of(recording: Recording, shown: Sample) -> bool:
    """Whether its first or its newest sample has a server that is shown: between them it may have been started anew,
    and at either end it may not be there. While none is shown, any recording of this node tells what was."""
    wanted = _names(shown)
    spans = recording.index.spans
    ends = (spans[0].t0, max(span.t1 for span in spans))
    return not wanted or any(wanted & _names(recording.sample(recording.seq_at(at))) for at in ends)


def _names(sample: Sample) -> set[str | tuple[int, int]]:
    """What a server is known by within one boot: its process, and its address, which it keeps when started anew."""
    names: set[str | tuple[int, int]] = set()
    for server in sample.processes.servers if sample.processes is not None else ():
        if server.pid is not None:
            names.add((server.pid, server.start_ticks))
        if server.url is not None:
            names.add(server.id)
    return names
