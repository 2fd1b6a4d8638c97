"""Reading a recording, also while it is written: any sample by number or time, all in order, events."""

from __future__ import annotations

import os
import sqlite3
from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self, TypeVar

import msgspec

from ranktop.recording.connection import FAILURES, connect, unreadable
from ranktop.recording.creation import is_recorded
from ranktop.recording.decoder import MAX_UNPACKED_BYTES, OpenChunk, PartValues, read_tail, tail_parts
from ranktop.recording.encoder import MAX_CHUNK_SAMPLES, MAX_TAIL_DISTANCE, TailPart
from ranktop.recording.errors import Damaged
from ranktop.recording.index import Index, Span
from ranktop.recording.notes import SAMPLE, Note
from ranktop.recording.packed import unpack
from ranktop.recording.pages import is_log_damaged, rows_of
from ranktop.recording.tables import BLOCK, CHUNK, EVENT, META, SERIES, TAIL, Table, uses_of
from ranktop.sample import Event, Sample, SeriesKey

_OPEN_CHUNKS = 2
_KEPT_SERIES = 16
_MAX_EVENTS = 1_000_000


_Kept = TypeVar("_Kept")


class _NotInTail(Damaged):
    """A minute leaves the tail when its chunk is written."""


class Recorded(NamedTuple):
    """One sample and its number."""

    seq: int
    sample: Sample


class Recording:
    """An open recording. RecordingError when it cannot be opened; damage inside is a gap, named in `damage`."""

    def __init__(self, path: str, db: sqlite3.Connection | None = None, told: Sequence[str] = ()) -> None:
        """`db`: read that instead of the file (what was salvaged from it); `told`: what is to be said of it."""
        self.path = path
        self.is_salvaged = db is not None
        self._db: sqlite3.Connection | None = db or connect(path)
        self._damage: dict[str, None] = dict.fromkeys(told)
        self._bases: OrderedDict[int, bytes] = OrderedDict()
        self._keys: OrderedDict[int, tuple[SeriesKey, ...]] = OrderedDict()
        self._chunks: OrderedDict[int, OpenChunk] = OrderedDict()
        self._values = PartValues(self._keys_of)
        self._tails: OrderedDict[int, list[TailPart]] = OrderedDict()
        try:
            self.meta = {row[0]: row[1] for row in self._checked(META, "LIMIT 10000")}
            self.index = Index(self._spans())
            if db is None:
                self._note_lost_log()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._db is not None:
            self._db.close()

    def rest(self) -> None:
        """Let go of the file until somebody reads it again, so that its recorder can end with one file."""
        self.close()
        self._db = None

    @property
    def damage(self) -> list[str]:
        """What could not be read so far, one line each."""
        missing = self.index.missing()
        told = [f"{missing} samples are missing between the first and the last"] if missing else []
        return [*self._damage, *told]

    def refresh(self) -> bool:
        """Look whether the recorder has added samples. True when it has."""
        before = self.index.spans[-1].last_seq if self.index.spans else 0
        self.index = Index(self._spans())
        return bool(self.index.spans) and self.index.spans[-1].last_seq > before

    def sample(self, seq: int) -> Sample:
        """One sample by its number. Damaged when it is not there, or its checksum does not hold."""
        span = self.index.span_of(seq)
        if span is None:
            raise Damaged(f"sample {seq} is not in the recording")
        if not span.is_chunk:
            found = self._tail_sample(seq)
            if found is not None:
                return found
            # The recorder has put it into a chunk since.
            self.refresh()
            span = self.index.span_of(seq)
            if span is None or not span.is_chunk:
                raise Damaged(f"sample {seq} is not in the recording any more")
        events = self._events_of(seq, seq)
        return self._chunk(span).sample(seq - span.first_seq, events.get(seq, ()))

    def samples(self, first_seq: int | None = None, last_seq: int | None = None) -> Iterator[Recorded]:
        """Samples in the order they were taken; what is damaged is left out and noted."""
        for span in self.index.spans:
            if (first_seq is not None and span.last_seq < first_seq) or (
                last_seq is not None and span.first_seq > last_seq
            ):
                continue
            begin = max(span.first_seq, first_seq or 0)
            end = min(span.last_seq, last_seq if last_seq is not None else span.last_seq)
            try:
                yield from self._span_samples(span, begin, end)
            except Damaged as problem:
                self._note_damage(f"{span.samples} samples from number {span.first_seq}: {problem}")

    def changes(self, field: str, first_seq: int, last_seq: int) -> Iterator[tuple[int, str | None, Any]]:
        """(number, server, value) of one part wherever it was read anew: far cheaper than whole samples.

        A part can come once more than it was read, at the beginning of a minute.
        """
        for span in self.index.spans:
            if span.last_seq < first_seq or span.first_seq > last_seq:
                continue
            try:
                if span.is_chunk:
                    found = [
                        (span.first_seq + at, server, value) for at, server, value in self._chunk(span).changes(field)
                    ]
                else:
                    part = getattr(self.sample(span.first_seq), field)
                    found = [(span.first_seq, server, value) for server, value in part.items()]
            except Damaged as problem:
                self._note_damage(f"{span.samples} samples from number {span.first_seq}: {problem}")
                continue
            yield from (one for one in sorted(found, key=lambda one: one[0]) if first_seq <= one[0] <= last_seq)

    def seq_at(self, at_unix_seconds: float) -> int:
        """The newest sample taken at or before that time, the first one when all are later. 0 when there is none."""
        span = self.index.span_at(at_unix_seconds)
        if span is None:
            return 0
        if at_unix_seconds < span.t0:
            return self.index.seq(self.index.position(span.first_seq) - 1)
        if not span.is_chunk:
            return span.first_seq
        try:
            times = self._chunk(span).times()
        except Damaged:
            return span.first_seq
        return span.first_seq + max(bisect_right(times, at_unix_seconds) - 1, 0)

    def events(self, first_seq: int = 0, last_seq: int | None = None) -> list[Note]:
        """What happened, in the order of the samples."""
        where = "WHERE seq BETWEEN ? AND ? ORDER BY seq, id LIMIT ?"
        last = last_seq if last_seq is not None else 1 << 62
        return [Note(*row[1:]) for row in self._checked(EVENT, where, (first_seq, last, _MAX_EVENTS))]

    def stored(self, table: Table, where: str = "", values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Rows of a table as they are stored, checksum last; those whose checksum does not hold are left out."""
        return [row for row in self._rows(f"{table.select} {where}", values) if table.holds(row)]

    def _spans(self) -> list[Span]:
        spans: list[Span] = []
        end = 0
        for row in self._checked(CHUNK, "ORDER BY first_seq"):
            if None in row or row[0] <= end or not 0 < row[1] <= MAX_CHUNK_SAMPLES:
                self._note_damage(f"the entry of a chunk at number {row[0]} cannot be true")
                continue
            spans.append(Span(row[0], row[1], row[2], row[3], True, row[4]))
            end = spans[-1].last_seq
        covered = Index(spans)
        # A row of the tail is checked when it is read: here it only says that it is there.
        for seq, at in self._rows("SELECT seq, t FROM tail ORDER BY seq"):
            if isinstance(seq, int) and isinstance(at, float) and covered.span_of(seq) is None:
                spans.append(Span(seq, 1, at, at, False))
        return spans

    def _note_lost_log(self) -> None:
        """SQLite leaves out a log from its first damaged frame on, without a word.

        Also what a killed recorder had not committed: that nobody was told of.
        """
        if not os.path.exists(f"{self.path}-wal") or is_recorded(self.path) or not is_log_damaged(self.path):
            return
        last = self.index.spans[-1].last_seq if self.index.spans else 0
        lost = {
            row[0]
            for rowid, payload in rows_of(self.path, log_only=True)
            if len(payload) == len(TAIL.columns) + 1
            and TAIL.holds(row := TAIL.as_sqlite_gives(rowid, payload))
            and row[0] > last
        }
        if lost:
            self._note_damage(f"{len(lost)} samples of its write-ahead log are not shown")
        else:
            self._note_damage("its write-ahead log is damaged near its end: the last samples may not be shown")

    def _span_samples(self, span: Span, begin: int, end: int) -> Iterator[Recorded]:
        if not span.is_chunk:
            yield Recorded(begin, self.sample(begin))
            return
        chunk = self._chunk(span)
        events = self._events_of(begin, end)
        for seq in range(begin, end + 1):
            yield Recorded(seq, chunk.sample(seq - span.first_seq, events.get(seq, ())))

    def _tail_sample(self, seq: int) -> Sample | None:
        """None when it, or what it names, is no longer in the tail: all of a minute leaves it at once."""
        try:
            return read_tail(seq, self._tail, self._values, self._events_of(seq, seq).get(seq, ()))
        except _NotInTail:
            return None

    def _tail(self, seq: int) -> list[TailPart]:
        """A row of the tail. _NotInTail when it is not there, Damaged when it cannot be read."""
        return _kept(self._tails, seq, self._read_tail, MAX_TAIL_DISTANCE)

    def _read_tail(self, seq: int) -> list[TailPart]:
        rows = self._rows(f"{TAIL.select} WHERE seq = ?", (seq,))
        if not rows:
            raise _NotInTail(f"the tail row of sample {seq} is missing")
        if not TAIL.holds(rows[0]):
            raise Damaged(f"the checksum of sample {seq} does not hold")
        return tail_parts(rows[0][2])

    def _chunk(self, span: Span) -> OpenChunk:
        return _kept(self._chunks, span.first_seq, lambda _: self._read_chunk(span), _OPEN_CHUNKS)

    def _read_chunk(self, span: Span) -> OpenChunk:
        rows = self._rows(f"{BLOCK.select} WHERE first_seq = ?", (span.first_seq,))
        if not rows or not BLOCK.holds(rows[0]) or not isinstance(rows[0][1], bytes):
            raise Damaged("the chunk is missing or its checksum does not hold")
        try:
            base = uses_of(span.uses)[0]
        except (msgspec.MsgspecError, IndexError) as problem:
            raise Damaged(f"the entry of a chunk does not tell what it uses: {problem}") from problem
        chunk = OpenChunk(rows[0][1], _kept(self._bases, base, self._series, _OPEN_CHUNKS), self._values)
        if chunk.count != span.samples:
            raise Damaged("the chunk holds another number of samples than its entry says")
        return chunk

    def _keys_of(self, number: int) -> tuple[SeriesKey, ...]:
        """The keys of the points of a metrics page."""
        return _kept(self._keys, number, self._read_keys, _KEPT_SERIES)

    def _read_keys(self, number: int) -> tuple[SeriesKey, ...]:
        try:
            return msgspec.msgpack.decode(self._series(number), type=tuple[SeriesKey, ...])
        except (msgspec.MsgspecError, RecursionError) as problem:
            raise Damaged(f"keys of a metrics page cannot be read: {problem}") from problem

    def _series(self, number: int) -> bytes:
        """What a row of `series` packs, of the first of its copies that holds."""
        for row in self._rows(f"{SERIES.select} WHERE id = ? ORDER BY copy", (number,)):
            if SERIES.holds(row) and isinstance(row[2], bytes):
                try:
                    return unpack(row[2], MAX_UNPACKED_BYTES)
                except ValueError as problem:
                    raise Damaged(f"row {number} of series cannot be read: {problem}") from problem
        raise Damaged(f"row {number} of series is missing or its checksum does not hold")

    def _events_of(self, first_seq: int, last_seq: int) -> dict[int, tuple[Event, ...]]:
        found: dict[int, list[Event]] = defaultdict(list)
        where = f"WHERE seq BETWEEN ? AND ? AND origin = '{SAMPLE}' ORDER BY id LIMIT ?"
        for row in self._checked(EVENT, where, (first_seq, last_seq, _MAX_EVENTS)):
            try:
                found[row[1]].append(msgspec.json.decode(row[10], type=Event))
            except (msgspec.MsgspecError, TypeError, RecursionError) as problem:
                self._note_damage(f"an event of sample {row[1]}: {problem}")
        return {seq: tuple(events) for seq, events in found.items()}

    def _checked(self, table: Table, where: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Rows whose checksum holds, without it."""
        good: list[tuple[Any, ...]] = []
        for row in self._rows(f"{table.select} {where}", values):
            if table.holds(row) and table.fits(row):
                good.append(row[:-1])
            else:
                self._note_damage(f"a row of {table.name}: its checksum does not hold")
        return good

    def _rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        if self._db is None:
            self._db = connect(self.path)
        try:
            return self._db.execute(statement, values).fetchall()
        except (*FAILURES, OverflowError) as problem:
            raise unreadable(self.path, problem) from problem

    def _note_damage(self, line: str) -> None:
        if len(self._damage) < 1000:
            self._damage[line] = None


def _kept(known: OrderedDict[int, _Kept], number: int, make: Callable[[int], _Kept], most: int) -> _Kept:
    """What is known of that number, made where it is not; so many are kept, those that were asked for last."""
    if number not in known:
        known[number] = make(number)
        if len(known) > most:
            known.popitem(last=False)
    known.move_to_end(number)
    return known[number]
