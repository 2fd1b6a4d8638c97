"""Samples to rows: one tail row a sample at once, one chunk a minute, schemas when something is new.

Holds the parts of the minute that is being filled. Says nothing about files.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from itertools import compress
from itertools import count as counted
from operator import ne
from typing import Any

import msgspec
from msgspec import Struct

from ranktop.recording.alike import Packed, pack
from ranktop.recording.flatten import Flatten, flattener
from ranktop.recording.flips import with_sums
from ranktop.recording.layout import Layout
from ranktop.recording.parts import ROOT, Key, part_types, root_layout, split
from ranktop.recording.schema import Schema
from ranktop.sample import Sample

MAX_CHANGED_WORDS_SHARE = 0.25
"""More words than that have changed: a new schema is cheaper."""

MAX_NEW_SCHEMAS = 3
"""So many of one part in one minute; after that its rows are loose: lists of finished requests never look alike."""

MAX_TAIL_DISTANCE = 10
"""A tail row names the row that holds a part which has not changed; one that is damaged takes no more with it."""

_REMEMBERED_SCHEMAS = 256


class PartRow(Struct, frozen=True, array_like=True, gc=False):
    """One part at one instant. The same object stands in every sample until the part changes.

    `numbers` is a list of numbers, still in msgpack. `loose` is (shape, words) of a row that has only the layout in
    common with its schema.
    """

    schema_id: int
    numbers: msgspec.Raw
    changed_words: dict[int, Any]
    loose: tuple[list[int], list[Any]] | None = None


class TailPart(Struct, frozen=True, array_like=True):
    """A part as a tail row keeps it: its row, or the number of the sample whose tail row has it."""

    field: str
    server: str | None
    row: PartRow | int


class Segment(Struct, frozen=True, array_like=True):
    """Rows of one part under one schema in one chunk. `starts` are the samples from which each row holds.

    `rows`: the numbers, as alike.py packs them. A schema id of None: from there on the part is missing. With `loose`
    the rows are there as they are.
    """

    schema_id: int | None
    starts: list[int]
    rows: Packed | None = None
    changed_words: list[dict[int, Any]] = []
    loose: list[PartRow] = []


class ChunkPart(Struct, frozen=True, array_like=True):
    """All segments of one part in the order of time."""

    field: str
    server: str | None
    segments: list[Segment]


class Chunk(Struct, frozen=True, array_like=True):
    """A minute of samples."""

    count: int
    parts: list[ChunkPart]


class NewSchema(Struct, frozen=True):
    """A schema that must be stored before the row that uses it."""

    id: int
    data: bytes


_NOTHING = object()


class _Part:
    """The newest state of one part, and the rows that it had in the minute that is being filled."""

    __slots__ = (
        "flatten",
        "key",
        "layout",
        "new_schemas",
        "plain",
        "row",
        "rows",
        "schema",
        "schema_id",
        "shape",
        "starts",
        "stood",
        "told",
        "told_until",
        "value",
        "words",
    )

    def __init__(self, key: Key, flatten: Flatten, layout: Layout) -> None:
        self.key = key
        self.flatten = flatten
        self.layout = layout
        # 1 and True are equal: only where the types keep them apart is an equal value the same.
        self.plain = '"x"' not in msgspec.json.encode(layout).decode()
        self.value: Any = _NOTHING
        self.stood = False
        """Whether it did not change when it was last looked at: then values are worth a comparison."""
        self.words: list[Any] = []
        self.shape: list[int] = []
        self.schema = Schema(layout, [], [], msgspec.Raw())
        self.schema_id = 0
        self.row: PartRow | None = None
        self.starts: list[int] = []
        self.rows: list[PartRow | None] = []
        """From each of `starts` on, counted in the minute, the row that holds; None where the part is missing."""
        self.told: tuple[str, str | None, PartRow | int] = (*key, 0)
        """What tail rows say instead of the row until the sample `told_until`: which sample's tail row has it."""
        self.told_until = 0
        self.new_schemas = 0

    def hold(self, row: PartRow | None, position: int) -> None:
        """`row` holds from that position of the minute on."""
        self.row = row
        self.told_until = 0
        if self.starts and self.starts[-1] == position:
            self.rows[-1] = row
        else:
            self.starts.append(position)
            self.rows.append(row)


class Encoder:
    """Feed it one sample after the other; take a chunk when the minute is full."""

    def __init__(self, last_schema_id: int = 0) -> None:
        """`last_schema_id`: ids up to that are taken in the file."""
        self._flatten: dict[str, tuple[Flatten, Layout]] = {ROOT[0]: (flattener(root_layout()), root_layout())}
        for name, kind in part_types().items():
            self._flatten[name] = (kind.flatten, kind.layout)
        self._parts: dict[Key, _Part] = {}
        self._known: OrderedDict[bytes, tuple[int, Schema]] = OrderedDict()
        self._bases: dict[int, bytes] = {}
        self.last_schema_id = last_schema_id
        self.count = 0
        """Samples since the last chunk."""
        self._pack = msgspec.msgpack.Encoder().encode

    def add(self, sample: Sample, seq: int) -> tuple[bytes, list[NewSchema]]:
        """(data of the tail row, schemas to store first)."""
        new: list[NewSchema] = []
        tail: list[tuple[str, str | None, PartRow | int]] = []
        parts, position = self._parts, self.count
        there = split(sample)
        for key, value in there:
            part = parts.get(key)
            if part is None:
                part = parts[key] = _Part(key, *self._flatten[key[0]])
            if part.value is not value and not (part.stood and part.value == value):
                self._update(part, value, position, new)
            if seq < part.told_until:
                tail.append(part.told)
            else:
                assert part.row is not None
                field, server = key
                tail.append((field, server, part.row))
                part.told, part.told_until = (field, server, seq), seq + MAX_TAIL_DISTANCE
        if len(there) < len(parts):
            for key in parts.keys() - {key for key, _ in there}:
                part = parts[key]
                if part.row is not None:
                    part.value = _NOTHING
                    part.hold(None, position)
        self.count += 1
        return with_sums(self._pack(tail)), new

    def take_chunk(self) -> tuple[Chunk, set[int]]:
        """The samples since the last chunk, and the ids of the schemas they use."""
        count, self.count = self.count, 0
        parts = [ChunkPart(*part.key, self._segments(part)) for part in self._parts.values() if any(part.rows)]
        used = {segment.schema_id for part in parts for segment in part.segments if segment.schema_id is not None}
        self._parts = {key: part for key, part in self._parts.items() if part.row is not None}
        for part in self._parts.values():
            part.starts, part.rows = [0], [part.row]
            part.new_schemas = part.told_until = 0
        kept = {schema_id for schema_id, _ in self._known.values()} | {part.schema_id for part in self._parts.values()}
        self._bases = {schema_id: base for schema_id, base in self._bases.items() if schema_id in kept}
        return Chunk(count, parts), used

    def forget_schemas_but(self, used: set[int]) -> None:
        """Older ones may have been dropped from the file: what comes back is stored anew."""
        self._known = OrderedDict((digest, known) for digest, known in self._known.items() if known[0] in used)

    def _update(self, part: _Part, value: Any, position: int, new: list[NewSchema]) -> None:
        unpacked, words, shape = part.flatten(value)
        numbers = msgspec.Raw(self._pack(unpacked))
        part.value = value
        row = part.row
        if row is not None and words == part.words and shape == part.shape:
            if numbers == row.numbers:
                part.stood = part.plain
                return
            row = PartRow(row.schema_id, numbers, row.changed_words, row.loose)
        else:
            row = self._row(part, numbers, words, shape, new)
        part.stood = False
        part.hold(row, position)

    def _row(
        self, part: _Part, numbers: msgspec.Raw, words: list[Any], shape: list[int], new: list[NewSchema]
    ) -> PartRow:
        part.words, part.shape = words, shape
        changed = _changed(words, part.schema.words) if part.schema_id and shape == part.schema.shape else None
        if changed is not None:
            return PartRow(part.schema_id, numbers, changed)
        if self._store(part, Schema(part.layout, shape, words, numbers), new):
            return PartRow(part.schema_id, numbers, {})
        return PartRow(part.schema_id, numbers, {}, (shape, words))

    def _store(self, part: _Part, schema: Schema, new: list[NewSchema]) -> bool:
        """Give the part that schema. False when it has had too many new ones in this minute.

        One that was seen lately is not stored again; its first row may be another one.
        """
        identity = msgspec.msgpack.encode((schema.layout, schema.shape, schema.words))
        digest = hashlib.blake2b(identity, digest_size=16).digest()
        known = self._known.get(digest)
        if known is None:
            if part.new_schemas >= MAX_NEW_SCHEMAS:
                return False
            part.new_schemas += 1
            self.last_schema_id += 1
            known = self._known[digest] = (self.last_schema_id, schema)
            self._bases[self.last_schema_id] = bytes(schema.base)
            new.append(NewSchema(self.last_schema_id, schema.encoded()))
            if len(self._known) > _REMEMBERED_SCHEMAS:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(digest)
        part.schema_id, part.schema = known
        return True

    def _segments(self, part: _Part) -> list[Segment]:
        """Runs of rows under one schema."""
        runs: list[tuple[tuple[int, bool] | None, list[int], list[PartRow]]] = []
        for position, row in zip(part.starts, part.rows, strict=True):
            kind = None if row is None else (row.schema_id, row.loose is not None)
            if not runs or runs[-1][0] != kind:
                runs.append((kind, [], []))
            runs[-1][1].append(position)
            if row is not None:
                runs[-1][2].append(row)
        return [self._segment(starts, held) for _, starts, held in runs]

    def _segment(self, starts: list[int], rows: list[PartRow]) -> Segment:
        if not rows:
            return Segment(None, starts)
        schema_id = rows[0].schema_id
        if rows[0].loose is not None:
            return Segment(schema_id, starts, loose=rows)
        packed = pack([bytes(row.numbers) for row in rows], self._bases[schema_id])
        words = [row.changed_words for row in rows]
        return Segment(schema_id, starts, packed, words if any(words) else [])


def _changed(words: list[Any], known: list[Any]) -> dict[int, Any] | None:
    """The words that differ by index, None when too many do."""
    if words == known:
        return {}
    if len(words) != len(known):
        return None
    changed = {index: words[index] for index in compress(counted(), map(ne, words, known))}
    return changed if len(changed) <= MAX_CHANGED_WORDS_SHARE * len(words) + 1 else None


def uses(ids: Iterable[int]) -> str:
    """The ids of schemas as `chunk.uses` keeps them: a JSON list."""
    return msgspec.json.encode(sorted(ids)).decode()
