"""A range of a recording as a recording of its own: the same rows, by whole minutes, nothing encoded anew."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import msgspec

from ranktop.recording.errors import RecordingError
from ranktop.recording.facts import CUT_FROM
from ranktop.recording.findings import FindingHistory
from ranktop.recording.journal import Journal, Statement
from ranktop.recording.notes import OPENED, RECORDER, Note
from ranktop.recording.reader import Recording
from ranktop.recording.tables import BLOCK, CHUNK, EVENT, META, ROLLUP, SERIES, TAIL, uses_of


def cut(recording: Recording, first_seq: int, last_seq: int, path: str, overwrite: bool = False) -> int:
    """Write the minutes that hold these samples to a new file; the number of samples in it.

    RecordingError when the file cannot be made or written, or the range holds nothing.
    """
    spans = [span for span in recording.index.spans if span.last_seq >= first_seq and span.first_seq <= last_seq]
    if not spans:
        raise RecordingError(f"{recording.path}: no sample between numbers {first_seq} and {last_seq}")
    # A row of the tail names rows before it: the minute that is not full yet is taken from its beginning.
    first = spans[0] if spans[0].is_chunk else next(span for span in recording.index.spans if not span.is_chunk)
    spans = [span for span in recording.index.spans if first.first_seq <= span.first_seq <= spans[-1].first_seq]
    begin, end = first.first_seq, spans[-1].last_seq
    journal = Journal(path, overwrite)
    try:
        journal.write(list(_statements(recording, begin, end)))
    except sqlite3.Error as problem:
        raise RecordingError(f"{path}: cannot be written: {problem}") from problem
    finally:
        journal.close()
    return sum(span.samples for span in spans)


def _statements(recording: Recording, begin: int, end: int) -> Iterator[Statement]:
    for name, value in (recording.meta | {CUT_FROM: f"samples {begin} to {end} of a longer recording"}).items():
        yield META.insert, META.row(name, value)
    within = ("BETWEEN ? AND ?", (begin, end))
    chunks = recording.stored(CHUNK, f"WHERE first_seq {within[0]}", within[1])
    tails = recording.stored(TAIL, f"WHERE seq {within[0]}", within[1])
    used = {number for row in chunks for number in uses_of(row[4])}
    for row in recording.stored(SERIES):
        # A row of the tail does not tell what it uses: with one, all are taken along.
        if tails or row[0] in used:
            yield SERIES.insert, row
    for row in chunks:
        yield CHUNK.insert, row
        for block in recording.stored(BLOCK, "WHERE first_seq = ?", (row[0],)):
            yield BLOCK.insert, block
    for row in tails:
        yield TAIL.insert, row
    events = [Note(*row[1:-1]) for row in recording.stored(EVENT, f"WHERE seq {within[0]} ORDER BY id", within[1])]
    for number, note in enumerate((*_open_at(recording, begin), *events), start=1):
        yield EVENT.insert, EVENT.row(number, *note.columns())
    for row in recording.stored(ROLLUP, f"WHERE seq {within[0]}", within[1]):
        yield ROLLUP.insert, row


def _open_at(recording: Recording, begin: int) -> Iterator[Note]:
    """Findings that were open already, so that the range begins with them."""
    history = FindingHistory(recording.events(0, begin - 1))
    changes = [change for change in history.changes if change.seq < begin]
    if not changes:
        return
    for finding in changes[-1].open:
        yield Note(
            begin,
            changes[-1].at_unix_seconds,
            RECORDER,
            OPENED,
            finding.severity,
            finding.server,
            code=finding.code,
            text=finding.message,
            json=msgspec.json.encode(finding).decode(),
        )
