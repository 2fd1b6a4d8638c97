"""Samples to rows: one tail row a sample at once, one chunk a minute.

A part is encoded in C as it stands, and again only when its source has answered anew. Holds the rows of the minute that
is being filled. Says nothing about files.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from ranktop.recording.packed import pack
from ranktop.recording.parts import (
    MAX_ROW_BYTES,
    ROOT,
    Key,
    check_size,
    encode,
    instant_of,
    page_row,
    part_types,
    split,
)
from ranktop.sample import MetricsPage, Sample, SeriesKey

MAX_CHUNK_SAMPLES = 600
MAX_PARTS = 4096
CHUNK_BYTES = 8 << 20
"""A chunk with more rows is full: a recorder holds them, and a reader those of every chunk that it has open."""

MAX_NEW_KEYS = 3
"""Sets of keys of one page in one minute; after that its rows carry their keys: a server that makes series all the time
would fill the file with sets that are used once."""

_MAX_CARRIED_KEYS_BYTES = 1 << 20

MAX_TAIL_DISTANCE = 10
"""A tail row names the row that holds a part which has not changed; one that is damaged takes no more with it."""

BASE_CHUNKS = 60
"""A dictionary helps for an hour: longer, and all of a day would hang on one row."""

_REMEMBERED_KEYS = 256
_NOTHING = object()
_NIL = msgspec.Raw(encode(None))


class TailPart(Struct, frozen=True, array_like=True):
    """A part as a tail row keeps it: the number of the sample whose tail row has it; there, its row (else nil)."""

    field: str
    server: str | None
    seq: int
    row: msgspec.Raw


class ChunkPart(Struct, frozen=True, array_like=True):
    """The rows of one part: from each of `starts` on, counted in the minute, that one holds.

    A row is empty where the part is missing from there on.
    """

    field: str
    server: str | None
    starts: Annotated[list[int], Meta(max_length=MAX_CHUNK_SAMPLES)]
    rows: Annotated[list[bytes], Meta(max_length=MAX_CHUNK_SAMPLES)]


class Chunk(Struct, frozen=True, array_like=True):
    """A minute of samples."""

    count: int
    parts: Annotated[list[ChunkPart], Meta(max_length=MAX_PARTS)]


class Packed(NamedTuple):
    """What must be stored under that id before a row that uses it: keys of a page, or the dictionary of chunks."""

    id: int
    data: bytes


class PackedChunk(NamedTuple):
    """`uses`: all ids of `series` that it needs, that of its dictionary first. `new` is to be stored before it."""

    data: bytes
    uses: list[int]
    new: list[Packed]


class _Part:
    """The newest state of one part, and the rows that it had in the minute that is being filled."""

    __slots__ = (
        "is_page",
        "key",
        "keys",
        "keys_id",
        "new_keys",
        "row",
        "rows",
        "starts",
        "told",
        "told_until",
        "value",
    )

    def __init__(self, key: Key, is_page: bool) -> None:
        self.key = key
        self.is_page = is_page
        self.value: Any = _NOTHING
        self.row: bytes | None = None
        self.starts: list[int] = []
        self.rows: list[bytes] = []
        """From each of `starts` on the row that holds; empty where the part is missing."""
        self.told: tuple[str, str | None, int, msgspec.Raw] = (*key, 0, _NIL)
        """What tail rows say until the sample `told_until`: which sample's tail row has it."""
        self.told_until = 0
        self.keys: tuple[SeriesKey, ...] = ()
        self.keys_id: int | None = None
        self.new_keys = 0

    def hold(self, row: bytes | None, position: int) -> None:
        """`row` holds from that position of the minute on."""
        self.row = row
        self.told_until = 0
        if self.starts and self.starts[-1] == position:
            self.rows[-1] = row or b""
        else:
            self.starts.append(position)
            self.rows.append(row or b"")


class Encoder:
    """Feed it one sample after the other; take a chunk when the minute is full."""

    def __init__(self, last_id: int = 0) -> None:
        """`last_id`: ids up to that are taken in the file."""
        self.last_id = last_id
        self.count = 0
        """Samples since the last chunk."""
        self._parts: dict[Key, _Part] = {ROOT: _Part(ROOT, is_page=False)}
        self._pages = {name for name, kind in part_types().items() if kind.is_page}
        self._known_keys: OrderedDict[bytes, int] = OrderedDict()
        self._used: set[int] = set()
        self._row_bytes = 0
        self._base = b""
        self._base_id = 0
        self._base_of: frozenset[Key] = frozenset()
        self._base_chunks = 0

    @property
    def is_full(self) -> bool:
        """Whether a chunk should be taken whatever the time."""
        return self._row_bytes >= CHUNK_BYTES or self.count >= MAX_CHUNK_SAMPLES

    def add(self, sample: Sample, seq: int) -> tuple[bytes, list[Packed]]:
        """(data of the tail row, what is to be stored first)."""
        new: list[Packed] = []
        parts, position = self._parts, self.count
        self._hold(parts[ROOT], encode(instant_of(sample)), position)
        tail = [self._told(parts[ROOT], seq)]
        there = split(sample)
        for key, value in there:
            part = parts.get(key)
            if part is None:
                part = parts[key] = _Part(key, key[0] in self._pages)
            if part.value is not value:
                part.value = value
                row = self._page(part, value, new) if part.is_page else encode(value)
                if row != part.row:
                    self._hold(part, row, position)
            tail.append(part.told if seq < part.told_until else self._told(part, seq))
        if len(there) + 1 < len(parts):
            for key in parts.keys() - {ROOT, *(key for key, _ in there)}:
                part = parts[key]
                if part.row is not None:
                    part.value = _NOTHING
                    part.hold(None, position)
        self.count += 1
        return encode(tail), new

    def take_chunk(self) -> PackedChunk:
        """The samples since the last chunk."""
        count, self.count = self.count, 0
        held = [part for part in self._parts.values() if any(part.rows)]
        data = encode(Chunk(count, [ChunkPart(*part.key, part.starts, part.rows) for part in held]))
        new = self._renew_base(held)
        packed = PackedChunk(pack(data, self._base), [self._base_id, *sorted(self._used)], new)
        self._begin_minute()
        return packed

    def forget_keys_but(self, used: Iterable[int]) -> None:
        """Older ones may have been dropped from the file: what comes back is stored anew."""
        kept = set(used)
        self._known_keys = OrderedDict((digest, known) for digest, known in self._known_keys.items() if known in kept)

    def _begin_minute(self) -> None:
        self._parts = {key: part for key, part in self._parts.items() if part.row is not None or key == ROOT}
        for part in self._parts.values():
            part.starts, part.rows = ([0], [part.row]) if part.row is not None else ([], [])
            part.new_keys = part.told_until = 0
        self._used = {part.keys_id for part in self._parts.values() if part.keys_id is not None}
        self._row_bytes = 0

    def _renew_base(self, held: list[_Part]) -> list[Packed]:
        """A dictionary of the first rows of this minute, when there is none that fits it."""
        parts = frozenset(part.key for part in held)
        self._base_chunks += 1
        if self._base_id and self._base_chunks <= BASE_CHUNKS and parts <= self._base_of:
            return []
        self._base = b"".join(next(filter(None, part.rows)) for part in held)
        self._base_of, self._base_chunks = parts, 1
        self.last_id += 1
        self._base_id = self.last_id
        return [Packed(self._base_id, pack(self._base))]

    def _hold(self, part: _Part, row: bytes, position: int) -> None:
        if len(row) > MAX_ROW_BYTES:
            check_size(part.key[0], row)
        part.hold(row, position)
        self._row_bytes += len(row)

    @staticmethod
    def _told(part: _Part, seq: int) -> tuple[str, str | None, int, msgspec.Raw]:
        """The part with its row; the tail rows after this one name it."""
        assert part.row is not None
        field, server = part.key
        part.told, part.told_until = (field, server, seq, _NIL), seq + MAX_TAIL_DISTANCE
        return (field, server, seq, msgspec.Raw(part.row))

    def _page(self, part: _Part, page: MetricsPage, new: list[Packed]) -> bytes:
        if part.keys_id is None or (page.keys is not part.keys and page.keys != part.keys):
            part.keys, part.keys_id = page.keys, self._keys_id(part, page.keys, new)
        return page_row(page, page.keys if part.keys_id is None else part.keys_id)

    def _keys_id(self, part: _Part, keys: tuple[SeriesKey, ...], new: list[Packed]) -> int | None:
        """The row of `series` that holds these keys; None when the page has had too many new ones in this minute."""
        data = encode(keys)
        digest = hashlib.blake2b(data, digest_size=16).digest()
        known = self._known_keys.get(digest)
        if known is None:
            if part.new_keys >= MAX_NEW_KEYS and len(data) <= _MAX_CARRIED_KEYS_BYTES:
                return None
            part.new_keys += 1
            self.last_id += 1
            known = self._known_keys[digest] = self.last_id
            new.append(Packed(known, pack(data)))
            if len(self._known_keys) > _REMEMBERED_KEYS:
                self._known_keys.popitem(last=False)
        else:
            self._known_keys.move_to_end(digest)
        self._used.add(known)
        return known
