"""Rows back to samples. Needs the rows of `series` by id; says nothing about files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ranktop.recording.encoder import MAX_CHUNK_SAMPLES, MAX_PARTS, Chunk, ChunkPart, TailPart
from ranktop.recording.errors import Damaged
from ranktop.recording.packed import unpack
from ranktop.recording.parts import ROOT, Key, KeysOf, join, read
from ranktop.sample import Event, Sample

MAX_UNPACKED_BYTES = 64 << 20

_FAILURES = (msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError)
_TailParts = Annotated[list[TailPart], Meta(max_length=MAX_PARTS)]


class PartValues:
    """Typed values of parts, each made once: a part that stands still is one object in many samples."""

    def __init__(self, keys_of: KeysOf) -> None:
        self._keys_of = keys_of
        self._latest: dict[Key, tuple[object, bytes, Any]] = {}

    def value(self, key: Key, identity: object, row: Callable[[], bytes]) -> Any:
        """The value of that part; `row` is asked only when `identity` is not that of the part's last value.

        Damaged when the row does not fit its type.
        """
        known = self._latest.get(key)
        if known is not None and known[0] == identity:
            return known[2]
        found = row()
        value = known[2] if known is not None and known[1] == found else self._typed(key[0], found)
        self._latest[key] = (identity, found, value)
        return value

    def _typed(self, field: str, row: bytes) -> Any:
        try:
            return read(field, row, self._keys_of)
        except _FAILURES as problem:
            raise Damaged(f"part {field or 'sample'!r}: {problem}") from problem


def read_tail(
    seq: int, tail_of: Callable[[int], Sequence[TailPart]], values: PartValues, events: tuple[Event, ...] = ()
) -> Sample:
    """The sample of one tail row. `tail_of` gives a row by its number. Damaged when it cannot be read."""
    parts: dict[Key, Any] = {}
    for part in tail_of(seq):
        key, at = (part.field, part.server), part.seq
        parts[key] = values.value(key, at, lambda key=key, at=at: _tail_row(key, at, tail_of(at)))
    return _joined(parts, events)


def tail_parts(data: bytes) -> list[TailPart]:
    """What stands in a row of `tail`. Damaged when it is none."""
    try:
        return msgspec.msgpack.decode(data, type=_TailParts)
    except (msgspec.MsgspecError, RecursionError) as problem:
        raise Damaged(f"a tail row cannot be read: {problem}") from problem


def _tail_row(key: Key, seq: int, tail: Sequence[TailPart]) -> bytes:
    for part in tail:
        if (part.field, part.server, part.seq) == (*key, seq):
            return bytes(part.row)
    raise Damaged(f"part {key[0] or 'sample'!r} is not in the tail row that is to have it")


class _Rows:
    """The rows of one part in a chunk."""

    __slots__ = ("_ends", "_rows", "starts")

    def __init__(self, part: ChunkPart) -> None:
        """ValueError when they are not what they say."""
        self.starts, self._rows = part.starts, part.rows
        if self.starts != sorted(set(self.starts)) or min(self.starts, default=-1) < 0:
            raise ValueError("rows out of order")
        if len(self._rows) != len(self.starts):
            raise ValueError("rows do not fit their places")

    def number_at(self, position: int) -> int | None:
        """Which row holds there; None where the part is missing."""
        number = bisect_right(self.starts, position) - 1
        return number if number >= 0 and self._rows[number] else None

    def row(self, number: int) -> bytes:
        """Empty where the part is missing."""
        return self._rows[number]


class OpenChunk:
    """A chunk ready for random access: `sample(position)` for 0 <= position < count."""

    def __init__(self, blob: bytes, base: bytes, values: PartValues) -> None:
        """Damaged when the bytes are no chunk. `base`: its dictionary; `values` may be those of other chunks."""
        try:
            chunk = msgspec.msgpack.decode(unpack(blob, MAX_UNPACKED_BYTES, base), type=Chunk)
            if not 0 < chunk.count <= MAX_CHUNK_SAMPLES:
                raise ValueError(f"{chunk.count} samples in a chunk")
            self._rows = {(part.field, part.server): _Rows(part) for part in chunk.parts}
        except _FAILURES as problem:
            raise Damaged(f"a chunk cannot be read: {problem}") from problem
        self.count = chunk.count
        self._values = values
        self._times: list[float] | None = None

    def sample(self, position: int, events: tuple[Event, ...] = ()) -> Sample:
        """One sample. Damaged when a value does not fit its type."""
        parts: dict[Key, Any] = {}
        for key, rows in self._rows.items():
            number = rows.number_at(position)
            if number is not None:
                parts[key] = self._value(key, rows, number)
        return _joined(parts, events)

    def changes(self, field: str) -> Iterator[tuple[int, str | None, Any]]:
        """(position, server, value) wherever that part has a new row. Damaged when a value does not fit its type."""
        for key, rows in self._rows.items():
            if key[0] == field:
                for number, position in enumerate(rows.starts):
                    if rows.row(number):
                        yield position, key[1], self._value(key, rows, number)

    def times(self) -> list[float]:
        """The wall clock of every sample, in their order. Damaged when they do not all have one."""
        if self._times is None:
            rows = self._rows.get(ROOT)
            if rows is None or rows.starts != list(range(self.count)):
                raise Damaged("samples of a chunk have no time")
            self._times = [self._value(ROOT, rows, number).at_unix_seconds for number in range(self.count)]
        return self._times

    def _value(self, key: Key, rows: _Rows, number: int) -> Any:
        return self._values.value(key, (rows, number), lambda: rows.row(number))


def _joined(parts: dict[Key, Any], events: tuple[Event, ...]) -> Sample:
    try:
        return join(parts, events)
    except (KeyError, TypeError) as problem:
        raise Damaged(f"a sample lacks {problem}") from problem
