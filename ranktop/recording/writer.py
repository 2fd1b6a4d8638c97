"""Samples to a file: every sample is on the disk when `append` returns, whatever kills the recorder after that."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from ranktop.reconcile.verdict import Verdict
from ranktop.recording.encoder import Encoder, Packed
from ranktop.recording.errors import RecordingError
from ranktop.recording.journal import Journal, Statement
from ranktop.recording.marks import Mark
from ranktop.recording.notes import Notary, Note, gap, mark
from ranktop.recording.rollup import PERIOD_SECONDS, rollup_rows
from ranktop.recording.tables import BLOCK, CHUNK, EVENT, META, ROLLUP, SERIES, TAIL, uses_text
from ranktop.sample import Sample

CHUNK_SECONDS = 60.0
SERIES_COPIES = 2
"""An hour hangs on its dictionary: two rows, so that one damaged page does not take it along."""

MAX_UNWRITTEN_SAMPLES = 120
"""Samples kept in memory while the disk refuses them."""

_MEASURE_EVERY_SAMPLES = 10
"""Three questions to SQLite, which would be a tenth of what a sample costs."""


class Writer:
    """One recording being written, by one thread."""

    def __init__(
        self,
        path: str,
        meta: Mapping[str, str],
        *,
        max_bytes: int | None = None,
        max_age_seconds: float | None = None,
        overwrite: bool = False,
    ) -> None:
        """RecordingError when the file cannot be made."""
        self._journal = Journal(path, overwrite)
        self._max_bytes = max_bytes
        self._max_age_seconds = max_age_seconds
        self._encoder = Encoder()
        self._notary = Notary()
        self._pending: list[Statement] = []
        self._late_copies: list[Statement] = []
        self._unwritten = 0
        self._seq = 0
        self._event_id = 0
        self._rollup_id = 0
        self._rollup_due: float | None = None
        self._minute: list[tuple[int, float, float]] = []
        self._lost: tuple[float, int] | None = None
        self._measured_at, self._used_bytes = 0, self._journal.used_bytes
        self._journal.write([(META.insert, META.row(name, value)) for name, value in meta.items()])

    @property
    def path(self) -> str:
        """The file."""
        return self._journal.path

    @property
    def used_bytes(self) -> int:
        """What the file held lately, without the write-ahead log."""
        if self._seq >= self._measured_at + _MEASURE_EVERY_SAMPLES:
            self._measured_at, self._used_bytes = self._seq, self._journal.used_bytes
        return self._used_bytes

    def append(self, sample: Sample, verdict: Verdict | None = None, marks: list[Mark] | None = None) -> None:
        """Store one sample. sqlite3.Error: it waits in memory, with those before it, for the next call.

        RecordingError: this sample holds what no recording can (an int beyond 64 bits); it is lost, the next is not.
        """
        if self._unwritten >= MAX_UNWRITTEN_SAMPLES:
            self._give_up_unwritten()
        self._seq += 1
        at = sample.at_unix_seconds
        try:
            data, new = self._encoder.add(sample, self._seq)
        except (OverflowError, TypeError, ValueError) as problem:
            # A collector's defect. The encoder may have taken half of it: begin anew.
            self._unwritten += 1
            self._give_up_unwritten()
            raise RecordingError(f"a sample cannot be recorded: {problem} (a defect: please report it)") from problem
        self._store(new)
        self._pending.append((TAIL.insert, TAIL.row(self._seq, at, data)))
        self._minute.append((self._seq, at, sample.at_monotonic_seconds))
        self._unwritten += 1
        for note in self._notary.notes(self._seq, sample, verdict):
            self._note(note)
        for found in marks or ():
            self._note(mark(self._seq, found.at, found.text))
        self._roll_up(sample, verdict)
        minute = sample.at_monotonic_seconds - self._minute[0][2]
        if minute >= CHUNK_SECONDS - 1 or self._encoder.is_full:
            used = self._close_minute()
            self._flush()
            self._drop_outdated(at, used)
        else:
            self._flush()

    def lose(self, at_unix_seconds: float, count: int) -> None:
        """So many samples, the first of that time, never came to `append`: a gap is told behind the next one."""
        began, lost = self._lost or (at_unix_seconds, 0)
        self._lost = (began, lost + count)

    def close(self) -> None:
        """Put the last minute into a chunk and leave one file. sqlite3.Error: the rows on the disk stay as they are."""
        try:
            self._tell_lost()
            if self._encoder.count:
                self._close_minute()
            if self._pending:
                self._flush()
        finally:
            self._journal.close()

    def _note(self, note: Note) -> None:
        self._event_id += 1
        self._pending.append((EVENT.insert, EVENT.row(self._event_id, *note.columns())))

    def _roll_up(self, sample: Sample, verdict: Verdict | None) -> None:
        now = sample.at_monotonic_seconds
        if verdict is None or (self._rollup_due is not None and now < self._rollup_due):
            return
        # From the due time, so that it stays every tenth second; from now after a pause.
        due = self._rollup_due
        self._rollup_due = now + PERIOD_SECONDS if due is None or now - due > PERIOD_SECONDS else due + PERIOD_SECONDS
        for row in rollup_rows(self._seq, verdict):
            self._rollup_id += 1
            self._pending.append((ROLLUP.insert, ROLLUP.row(self._rollup_id, *row)))

    def _store(self, new: list[Packed]) -> None:
        for entry in new:
            self._pending.append((SERIES.insert, SERIES.row(entry.id, 0, entry.data)))
            self._late_copies += [
                (SERIES.insert, SERIES.row(entry.id, copy, entry.data)) for copy in range(1, SERIES_COPIES)
            ]

    def _close_minute(self) -> list[int]:
        """Lay the minute down as a chunk; the ids of `series` that it uses."""
        data, uses, new = self._encoder.take_chunk()
        minute, self._minute = self._minute, []
        first, last = minute[0][0], minute[-1][0]
        times = [at for _, at, _ in minute]
        self._store(new)
        self._pending += self._late_copies
        self._late_copies = []
        self._pending.append((BLOCK.insert, BLOCK.row(first, data)))
        self._pending.append(
            (CHUNK.insert, CHUNK.row(first, len(minute), min(times), max(times), uses_text(uses), len(data)))
        )
        self._pending.append(("DELETE FROM tail WHERE seq BETWEEN ? AND ?", (first, last)))
        return uses

    def _flush(self) -> None:
        self._journal.write(self._pending)
        self._pending = []
        self._unwritten = 0
        self._tell_lost()

    def _tell_lost(self) -> None:
        if self._lost is None:
            return
        since, count = self._lost
        self._lost = None
        samples = "1 sample was" if count == 1 else f"{count} samples were"
        self._note(gap(self._seq, since, f"{samples} lost: the disk was too slow, or it or the format refused them"))

    def _give_up_unwritten(self) -> None:
        """Forget what waits. The next sample starts a new minute with schemas of its own."""
        began, lost = self._lost or (self._minute[0][1] if self._minute else 0.0, 0)
        self._lost = (began, lost + self._unwritten)
        self._pending, self._late_copies, self._minute, self._unwritten = [], [], [], 0
        self._encoder = Encoder(self._encoder.last_id)

    def _drop_outdated(self, now: float, used: list[int]) -> None:
        """Drop whole chunks, oldest first, with all that belongs to them."""
        limit = self._drop_before(now)
        if limit is None:
            return
        self._encoder.forget_keys_but(used)
        self._pending += [(f"DELETE FROM {table} WHERE first_seq < ?", (limit,)) for table in ("block", "chunk")]
        self._pending += [(f"DELETE FROM {table} WHERE seq < ?", (limit,)) for table in ("tail", "event", "rollup")]
        self._pending.append(
            ("DELETE FROM series WHERE id NOT IN (SELECT value FROM chunk, json_each(chunk.uses))", ())
        )
        for note in self._notary.told_again(limit, now):
            self._note(note)
        self._flush()

    def _drop_before(self, now: float) -> int | None:
        """The first sample to keep, None when nothing is to be dropped. The newest chunk always stays."""
        if self._max_bytes is None and self._max_age_seconds is None:
            return None
        chunks = self._journal.query("SELECT first_seq, count, t1, bytes FROM chunk ORDER BY first_seq")
        over = self._journal.used_bytes - self._max_bytes if self._max_bytes is not None else 0
        keep_from: int | None = None
        for first, count, t1, size in chunks:
            too_old = self._max_age_seconds is not None and t1 < now - self._max_age_seconds
            if over <= 0 and not too_old:
                break
            over -= size
            keep_from = first + count
        return keep_from


def writable(problem: sqlite3.Error) -> str:
    """What a failed write means for its user, in one line."""
    text = str(problem)
    if "full" in text or "disk I/O" in text:
        return f"the disk refuses the recording ({text}); the screen goes on, recording resumes when there is room"
    return f"the recording cannot be written ({text})"
