"""Rows back to samples. Needs the schemas by id; says nothing about files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ranktop.recording.alike import Rows, numbers_of
from ranktop.recording.bounded import inflate
from ranktop.recording.encoder import Chunk, PartRow, Segment, TailPart
from ranktop.recording.errors import Damaged
from ranktop.recording.flips import without_sums
from ranktop.recording.layout import Number
from ranktop.recording.parts import ROOT, Key, join, typed, words_of
from ranktop.recording.schema import KnownSchema
from ranktop.sample import Event, Sample

MAX_ROW_BYTES = 64 << 20
MAX_CHUNK_SAMPLES = 3600

SchemaOf = Callable[[int], KnownSchema]
"""Raises Damaged for an id that the file does not hold."""


class Row(NamedTuple):
    """A `PartRow` as it is read, its numbers laid out."""

    schema_id: int
    numbers: list[Number]
    changed_words: Mapping[int, Any]
    loose: tuple[list[int], list[Any]] | None = None


class PartValues:
    """Typed values of parts, each made once: a part that stands still is one object in many samples."""

    def __init__(self, schema_of: SchemaOf) -> None:
        self._schema_of = schema_of
        self._latest: dict[Key, tuple[object, Row, Any]] = {}

    def value(self, key: Key, identity: object, row: Callable[[], Row]) -> Any:
        """The value of that part; `row` is asked only when `identity` is not that of the part's last value."""
        known = self._latest.get(key)
        if known is not None and known[0] == identity:
            return known[2]
        found = row()
        # 1 and True are equal, and so are their rows: what the field's type does not tell apart is the same.
        value = known[2] if known is not None and known[1] == found else self._typed(key, found)
        self._latest[key] = (identity, found, value)
        return value

    def _typed(self, key: Key, row: Row) -> Any:
        schema = self._schema_of(row.schema_id)
        try:
            value = typed(key, schema.value(row.numbers, row.changed_words, row.loose))
        except msgspec.ValidationError as problem:
            raise Damaged(f"part {key[0] or 'sample'!r}: {problem}") from problem
        if not schema.words_are_typed and not row.changed_words and row.loose is None:
            schema.use_words(words_of(key, value, schema.schema.layout))
        return value


def read_tail(
    seq: int, tail_of: Callable[[int], Sequence[TailPart]], values: PartValues, events: tuple[Event, ...] = ()
) -> Sample:
    """The sample of one tail row. `tail_of` gives a row by its number. Damaged when it cannot be read."""
    parts: dict[Key, Any] = {}
    try:
        for part in tail_of(seq):
            key = (part.field, part.server)
            at = part.row if isinstance(part.row, int) else seq
            parts[key] = values.value(key, at, lambda key=key, at=at: _tail_row(key, tail_of(at)))
        return join(parts, events)
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, RecursionError) as problem:
        raise Damaged(f"a tail row cannot be read: {problem}") from problem


def tail_parts(data: bytes) -> list[TailPart]:
    """What stands in a row of `tail`. Damaged when it is none."""
    try:
        return msgspec.msgpack.decode(without_sums(data) or b"", type=list[TailPart])
    except (msgspec.MsgspecError, RecursionError) as problem:
        raise Damaged(f"a tail row cannot be read: {problem}") from problem


def _tail_row(key: Key, tail: Sequence[TailPart]) -> Row:
    for part in tail:
        if (part.field, part.server) == key and isinstance(part.row, PartRow):
            return _laid_out(part.row)
    raise Damaged(f"part {key[0] or 'sample'!r} is not in the tail row that is to have it")


def _laid_out(row: PartRow) -> Row:
    return Row(row.schema_id, numbers_of(row.numbers), row.changed_words, row.loose)


class _Run:
    """One segment, its rows taken apart only when somebody asks for one."""

    __slots__ = ("rows", "segment")

    def __init__(self, segment: Segment, rows: Rows | None) -> None:
        self.segment = segment
        self.rows = rows


class OpenChunk:
    """A chunk ready for random access: `sample(position)` for 0 <= position < count."""

    def __init__(self, blob: bytes, schema_of: SchemaOf, values: PartValues | None = None) -> None:
        """Damaged when the bytes are no chunk or do not fit their schemas. `values` may be those of other chunks."""
        try:
            chunk = msgspec.msgpack.decode(inflate(blob, MAX_ROW_BYTES), type=Chunk)
            if not 0 < chunk.count <= MAX_CHUNK_SAMPLES:
                raise ValueError(f"{chunk.count} samples in a chunk")
            self._runs: dict[Key, tuple[list[int], list[_Run]]] = {}
            for part in chunk.parts:
                runs = [self._run(segment, schema_of) for segment in part.segments]
                starts = [run.segment.starts[0] for run in runs]
                if starts != sorted(set(starts)):
                    raise ValueError("segments out of order")
                self._runs[part.field, part.server] = (starts, runs)
        except (msgspec.MsgspecError, ValueError, TypeError, IndexError, RecursionError) as problem:
            raise Damaged(f"a chunk cannot be read: {problem}") from problem
        self.count = chunk.count
        self._times: list[float] | None = None
        self._schema_of = schema_of
        self._values = values or PartValues(schema_of)

    def sample(self, position: int, events: tuple[Event, ...] = ()) -> Sample:
        """One sample. Damaged when a value does not fit its type."""
        parts: dict[Key, Any] = {}
        for key, (starts, runs) in self._runs.items():
            index = bisect_right(starts, position) - 1
            if index < 0 or runs[index].segment.schema_id is None:
                continue
            run = runs[index]
            number = bisect_right(run.segment.starts, position) - 1
            parts[key] = self._values.value(key, (run, number), lambda run=run, number=number: self._row(run, number))
        try:
            return join(parts, events)
        except (KeyError, TypeError) as problem:
            raise Damaged(f"a sample of a chunk lacks {problem}") from problem

    def changes(self, field: str) -> Iterator[tuple[int, str | None, Any]]:
        """(position, server, value) wherever that part has a new row. Damaged when a value does not fit its type."""
        for (name, server), (_, runs) in self._runs.items():
            if name != field:
                continue
            for run in runs:
                for number, position in enumerate(run.segment.starts):
                    if run.segment.schema_id is not None:
                        row = self._row(run, number)
                        yield (
                            position,
                            server,
                            self._values.value((name, server), (run, number), lambda row=row: row),
                        )

    def times(self) -> list[float]:
        """The wall clock of every sample, in their order. Damaged when they do not all have one."""
        if self._times is None:
            self._times = self._read_times()
        return self._times

    def _read_times(self) -> list[float]:
        times: list[Any] = []
        try:
            for run in self._runs[ROOT][1]:
                assert run.segment.schema_id is not None
                place = self._schema_of(run.segment.schema_id).schema.layout["s"]["n"].index("at_unix_seconds")
                rows = (
                    run.rows.rows() if run.rows is not None else (_laid_out(row).numbers for row in run.segment.loose)
                )
                times += [numbers[place] for numbers in rows]
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError, IndexError, AssertionError) as problem:
            raise Damaged(f"samples of a chunk have no time: {problem!r}") from problem
        if len(times) != self.count or not all(isinstance(at, float) for at in times):
            raise Damaged("samples of a chunk have no time")
        return times

    def _run(self, segment: Segment, schema_of: SchemaOf) -> _Run:
        if not segment.starts or segment.starts != sorted(set(segment.starts)) or segment.starts[0] < 0:
            raise ValueError("rows out of order")
        if segment.schema_id is None:
            return _Run(segment, None)
        rows = len(segment.starts)
        if segment.changed_words and len(segment.changed_words) != rows:
            raise ValueError("words do not fit their rows")
        if segment.loose:
            if len(segment.loose) != rows:
                raise ValueError("loose rows do not fit their starts")
            return _Run(segment, None)
        base = bytes(schema_of(segment.schema_id).schema.base)
        return _Run(segment, Rows(segment.rows, base, rows) if segment.rows is not None else None)

    def _row(self, run: _Run, number: int) -> Row:
        words = run.segment.changed_words
        try:
            if run.segment.loose:
                return _laid_out(run.segment.loose[number])
            if run.rows is None or run.segment.schema_id is None:
                raise Damaged("a part is missing that every sample has")
            return Row(run.segment.schema_id, run.rows.row(number), words[number] if words else {})
        except (msgspec.MsgspecError, ValueError, IndexError) as problem:
            raise Damaged(f"a row of a chunk cannot be read: {problem}") from problem
