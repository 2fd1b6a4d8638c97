"""The recorder's own thread: takes samples without ever keeping the screen waiting, and tells how it fares."""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct

from ranktop.reconcile.verdict import Verdict
from ranktop.recording.errors import RecordingError
from ranktop.recording.marks import Mark, drop_marks_file, take_marks
from ranktop.recording.writer import Writer, writable
from ranktop.sample import Sample

QUEUE_SAMPLES = 120
"""Two minutes: a disk that is slower than that loses samples, and says so."""

CLOSE_SECONDS = 10.0
_log = logging.getLogger(__name__)
KEPT_MARKS = 300
"""Of those that nobody asks for: a recorder without a screen."""


class RecorderStatus(Struct, frozen=True):
    """How the recording fares. `problem`: one line while the disk refuses, None while all is well."""

    path: str
    samples: int = 0
    used_bytes: int = 0
    problem: str | None = None
    problem_since_unix_seconds: float | None = None


class _Handed(NamedTuple):
    """One sample, and what was lost before it: since when, and how many."""

    sample: Sample
    verdict: Verdict | None
    lost: tuple[float, int] | None


class Recorder:
    """Writes what it is given until it is stopped. RecordingError when the file cannot be made."""

    def __init__(
        self,
        path: str,
        meta: Mapping[str, str],
        *,
        max_bytes: int | None = None,
        max_age_seconds: float | None = None,
        overwrite: bool = False,
    ) -> None:
        try:
            self._writer = Writer(path, meta, max_bytes=max_bytes, max_age_seconds=max_age_seconds, overwrite=overwrite)
        except sqlite3.Error as problem:
            raise RecordingError(f"{path}: cannot be made: {problem}") from problem
        self._queue: queue.Queue[_Handed | None] = queue.Queue(QUEUE_SAMPLES)
        self._marks: queue.SimpleQueue[Mark] = queue.SimpleQueue()
        self._status = RecorderStatus(path)
        self._lost: tuple[float, int] | None = None
        self._written_marks: deque[Mark] = deque(maxlen=KEPT_MARKS)
        self._thread = threading.Thread(target=self._run, name="ranktop recorder", daemon=True)

    @property
    def status(self) -> RecorderStatus:
        """The newest state; a new object for every sample."""
        return self._status

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def put(self, sample: Sample, verdict: Verdict | None = None) -> None:
        """Hand over one sample; never waits. With a verdict its findings and the rollup are recorded too."""
        try:
            self._queue.put_nowait(_Handed(sample, verdict, self._lost))
            self._lost = None
        except queue.Full:
            since, count = self._lost or (sample.at_unix_seconds, 0)
            self._lost = (since, count + 1)

    def mark(self, text: str, at_unix_seconds: float | None = None) -> None:
        """Set a mark; it is written with the next sample."""
        self._marks.put(Mark(time.time() if at_unix_seconds is None else at_unix_seconds, text))

    def new_marks(self) -> list[Mark]:
        """Marks that were written since this was last asked, also those that another shell set; of many the newest."""
        found: list[Mark] = []
        with suppress(IndexError):
            while True:
                found.append(self._written_marks.popleft())
        return found

    def stop(self, timeout_seconds: float = CLOSE_SECONDS) -> bool:
        """Write what is queued and close the file. False when that took longer: the disk hangs, nothing is damaged."""
        ends = time.monotonic() + timeout_seconds
        try:
            self._queue.put(None, timeout=timeout_seconds)
        except queue.Full:
            return False
        self._thread.join(max(0.0, ends - time.monotonic()))
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            self._write(item)
        try:
            if self._lost is not None:
                self._writer.lose(*self._lost)
            self._writer.close()
        except sqlite3.Error as problem:
            self._fail(writable(problem))
        drop_marks_file(self._writer.path)

    def _write(self, handed: _Handed) -> None:
        marks = take_marks(self._writer.path)
        while not self._marks.empty():
            marks.append(self._marks.get())
        try:
            if handed.lost is not None:
                self._writer.lose(*handed.lost)
            self._writer.append(handed.sample, handed.verdict, marks)
        except sqlite3.Error as problem:
            self._fail(writable(problem))
            return
        except RecordingError as problem:
            self._fail(str(problem))
            return
        self._written_marks.extend(marks)
        self._status = RecorderStatus(self._writer.path, self._status.samples + 1, self._writer.used_bytes)

    def _fail(self, problem: str) -> None:
        before = self._status
        since = before.problem_since_unix_seconds
        if since is None:
            _log.error("%s", problem)
            since = time.time()
        self._status = RecorderStatus(before.path, before.samples, before.used_bytes, problem, since)
