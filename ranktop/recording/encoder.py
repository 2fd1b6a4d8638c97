"""Samples to rows: one tail row a sample at once, one chunk a minute, schemas when something is new.

Holds the parts of the minute that is being filled. Says nothing about files.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from ranktop.recording.columns import Lanes, pack
from ranktop.recording.layout import Flat, Flatten, Layout, Number, flattener
from ranktop.recording.parts import ROOT, Key, part_types, root_layout, split
from ranktop.recording.schema import Schema
from ranktop.sample import Sample

MAX_CHANGED_WORDS_SHARE = 0.25
"""More words than that have changed: a new schema is cheaper."""

MAX_NEW_SCHEMAS = 3
"""So many of one part in one minute; after that its rows are loose: lists of finished requests never look alike."""

DEFLATE_BYTES = 4096
"""A page is deflated once and written five times: cheaper than SQLite's work on the pages it saves."""

_REMEMBERED_SCHEMAS = 256


class PartRow(Struct, frozen=True, array_like=True):
    """One part at one instant. The same object stands in every sample until the part changes.

    `loose` is (shape, words) of a row that has only the layout in common with its schema.
    """

    schema_id: int
    numbers: list[Number]
    changed_words: dict[int, Any]
    loose: tuple[list[int], list[Any]] | None = None


class TailPart(Struct, frozen=True, array_like=True):
    """A part as a tail row keeps it: whole, though it may not have changed, so that every tail row stands alone."""

    field: str
    server: str | None
    deflated: bool
    data: bytes
    """A PartRow in msgpack."""


class Segment(Struct, frozen=True, array_like=True):
    """Rows of one part under one schema in one chunk. `starts` are the samples from which each row holds.

    A schema id of None: from there on the part is missing. With `loose` the rows are there, and not in columns.
    """

    schema_id: int | None
    starts: list[int]
    kinds: bytes = b""
    constants: list[Number] = []
    mixed: list[list[Number]] = []
    changed_words: list[dict[int, Any]] = []
    loose: list[PartRow] = []


class ChunkPart(Struct, frozen=True, array_like=True):
    """All segments of one part in the order of time."""

    field: str
    server: str | None
    segments: list[Segment]


class Chunk(Struct, frozen=True, array_like=True):
    """A minute of samples. `ints` and `floats` are the lanes of columns.py, in the order of parts and segments."""

    count: int
    parts: list[ChunkPart]
    ints: bytes
    floats: bytes


class NewSchema(Struct, frozen=True):
    """A schema that must be stored before the row that uses it."""

    id: int
    data: bytes


class _Part:
    """The newest state of one part."""

    def __init__(self, flatten: Flatten, layout: Layout) -> None:
        self.flatten = flatten
        self.layout = layout
        # 1 and True are equal: only where the types keep them apart is an equal value the same.
        self.plain = '"x"' not in msgspec.json.encode(layout).decode()
        self.value: Any = None
        self.schema = Schema(layout, [], [], [])
        self.schema_id = 0
        self.row: PartRow | None = None
        self.tail = b""
        self.new_schemas = 0


class Encoder:
    """Feed it one sample after the other; take a chunk when the minute is full."""

    def __init__(self, last_schema_id: int = 0) -> None:
        """`last_schema_id`: ids up to that are taken in the file."""
        self._flatten: dict[str, tuple[Flatten, Layout]] = {ROOT[0]: (flattener(root_layout()), root_layout())}
        for name, kind in part_types().items():
            self._flatten[name] = (flattener(kind.layout), kind.layout)
        self._parts: dict[Key, _Part] = {}
        self._known: OrderedDict[bytes, tuple[int, Schema]] = OrderedDict()
        self._bases: dict[int, list[Number]] = {}
        self.last_schema_id = last_schema_id
        self._minute: list[dict[Key, PartRow]] = []

    @property
    def count(self) -> int:
        """Samples since the last chunk."""
        return len(self._minute)

    def add(self, sample: Sample) -> tuple[bytes, list[NewSchema]]:
        """(data of the tail row, schemas to store first)."""
        new: list[NewSchema] = []
        rows: dict[Key, PartRow] = {}
        tail: list[bytes] = []
        for key, value in split(sample):
            part = self._parts.get(key)
            if part is None:
                part = self._parts[key] = _Part(*self._flatten[key[0]])
            if part.row is None or (part.value is not value and not (part.plain and part.value == value)):
                self._update(part, key, value, new)
            assert part.row is not None
            rows[key] = part.row
            tail.append(part.tail)
        for key in self._parts.keys() - rows.keys():
            del self._parts[key]
        self._minute.append(rows)
        return msgspec.msgpack.encode([msgspec.Raw(part) for part in tail]), new

    def take_chunk(self) -> tuple[Chunk, set[int]]:
        """The samples since the last chunk, and the ids of the schemas they use."""
        minute, self._minute = self._minute, []
        lanes = Lanes()
        # Insertion order keeps the order of the parts; a set would not.
        keys = dict.fromkeys(key for rows in minute for key in rows)
        parts = [ChunkPart(*key, self._segments([rows.get(key) for rows in minute], lanes)) for key in keys]
        used = {segment.schema_id for part in parts for segment in part.segments if segment.schema_id is not None}
        kept = {schema_id for schema_id, _ in self._known.values()} | {part.schema_id for part in self._parts.values()}
        self._bases = {schema_id: base for schema_id, base in self._bases.items() if schema_id in kept}
        for part in self._parts.values():
            part.new_schemas = 0
        return Chunk(len(minute), parts, *lanes.packed()), used

    def forget_schemas_but(self, used: set[int]) -> None:
        """Older ones may have been dropped from the file: what comes back is stored anew."""
        self._known = OrderedDict((digest, known) for digest, known in self._known.items() if known[0] in used)

    def _update(self, part: _Part, key: Key, value: Any, new: list[NewSchema]) -> None:
        flat = Flat()
        part.flatten(value, flat)
        part.value = value
        schema = part.schema
        changed = _changed(flat.words, schema.words) if part.row is not None and flat.shape == schema.shape else None
        if changed is not None:
            part.row = PartRow(part.schema_id, flat.numbers, changed)
        elif self._store(part, Schema(part.layout, flat.shape, flat.words, flat.numbers), new):
            part.row = PartRow(part.schema_id, flat.numbers, {})
        else:
            part.row = PartRow(part.schema_id, flat.numbers, {}, (flat.shape, flat.words))
        data = msgspec.msgpack.encode(part.row)
        deflated = len(data) > DEFLATE_BYTES
        part.tail = msgspec.msgpack.encode(TailPart(*key, deflated, zlib.compress(data, 1) if deflated else data))

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
            self._bases[self.last_schema_id] = schema.base
            new.append(NewSchema(self.last_schema_id, schema.encoded()))
            if len(self._known) > _REMEMBERED_SCHEMAS:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(digest)
        part.schema_id, part.schema = known
        return True

    def _segments(self, rows: list[PartRow | None], lanes: Lanes) -> list[Segment]:
        """Runs of rows under one schema; a row that stands for several samples is laid once."""
        runs: list[tuple[tuple[int, bool] | None, list[int], list[PartRow]]] = []
        before: object = self
        for position, row in enumerate(rows):
            if row is before:
                continue
            before = row
            kind = None if row is None else (row.schema_id, row.loose is not None)
            if not runs or runs[-1][0] != kind:
                runs.append((kind, [], []))
            runs[-1][1].append(position)
            if row is not None:
                runs[-1][2].append(row)
        return [self._segment(starts, held, lanes) for _, starts, held in runs]

    def _segment(self, starts: list[int], rows: list[PartRow], lanes: Lanes) -> Segment:
        if not rows:
            return Segment(None, starts)
        schema_id = rows[0].schema_id
        if rows[0].loose is not None:
            return Segment(schema_id, starts, loose=rows)
        kinds, constants, mixed = pack([row.numbers for row in rows], self._bases[schema_id], lanes)
        words = [row.changed_words for row in rows]
        return Segment(schema_id, starts, kinds, constants, mixed, words if any(words) else [])


def _changed(words: list[Any], known: list[Any]) -> dict[int, Any] | None:
    """The words that differ by index, None when too many do."""
    if words == known:
        return {}
    if len(words) != len(known):
        return None
    changed = {index: word for index, (word, old) in enumerate(zip(words, known, strict=True)) if word != old}
    return changed if len(changed) <= MAX_CHANGED_WORDS_SHARE * len(words) + 1 else None


def uses(ids: Iterable[int]) -> str:
    """The ids of schemas as `chunk.uses` keeps them: a JSON list."""
    return msgspec.json.encode(sorted(ids)).decode()
