"""Rows of numbers as columns: what stands still costs nothing, what moves is XORed with its neighbour in time.

A minute of a node is mostly constants. The columns that vary and hold only ints, or only floats, are laid row by row as
64-bit words, each XORed with the same column of the row before, and cut into byte planes, where the compressor finds
long runs of zeros. XOR works on one big integer for all columns at once, so that no Python loop runs over values; and
since the rows lie in the order of time, one row is read without undoing those after it. Lossless for every finite
float, for ints of -2^63 to 2^64-1, for None and for bool. Equal values are one value: the field's type says whether 1
is an int, a float or True, and -0.0 may come back as 0.0.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, compress
from operator import ne, xor
from types import NoneType
from typing import Any, Literal, NamedTuple

from ranktop.recording.layout import Number

BASE, CONSTANT, INTS, FLOATS, MIXED = range(5)
"""Kinds of a column: always what the schema's base row says, another constant, varying ints, floats, or anything."""

_IS_KIND = {kind: bytes(byte == kind for byte in range(256)) for kind in (CONSTANT, INTS, FLOATS, MIXED)}
_KINDS = bytes(range(MIXED + 1))
_WORD_BYTES = 8
_SMALL = bytes(byte for byte in range(256) if byte & 0x7F < 0x43)
"""Last bytes of floats below 2^49, in little end first."""

Code = Literal["q", "d"]


def deflate(data: bytes) -> bytes:
    """Byte planes compressed by their runs alone: smaller than zlib's level 4 makes them, in half its time."""
    stream = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_RLE)
    return stream.compress(data) + stream.flush()


class Packed(NamedTuple):
    """Columns of one length: the kind of each, other constants, mixed columns, and two lanes in byte planes."""

    kinds: bytes
    constants: list[Number]
    mixed: list[Any]
    ints: bytes
    floats: bytes


def pack(rows: Sequence[Sequence[Number]], base: Sequence[Number]) -> Packed:
    """Rows of the length of `base` as columns."""
    count, first = len(rows), rows[0]
    if len(first) != len(base):
        raise ValueError("rows of another length than their base")
    kinds = bytearray(len(base))
    if first != base:
        for index in compress(range(len(base)), map(ne, first, base)):
            kinds[index] = CONSTANT
    columns = list(zip(*rows, strict=True)) if count > 1 else []
    varying = [index for index, column in enumerate(columns) if column.count(column[0]) != count]
    lanes: dict[type, list[int]] = {int: [], float: [], NoneType: []}
    for index in varying:
        lanes.get(type(first[index]), lanes[NoneType]).append(index)
    ints, mixed_ints = _lane("q", columns, lanes[int])
    floats, mixed_floats = _lane("d", columns, lanes[float])
    mixed = sorted(lanes[NoneType] + mixed_ints + mixed_floats)
    for kind, indexes in ((INTS, lanes[int]), (FLOATS, lanes[float]), (MIXED, mixed)):
        for index in indexes:
            kinds[index] = kind
    constants = [first[index] for index in _where(bytes(kinds), CONSTANT)]
    return Packed(bytes(kinds), constants, [columns[index] for index in mixed], ints, floats)


def _lane(code: Code, columns: Sequence[Sequence[Any]], indexes: list[int]) -> tuple[bytes, list[int]]:
    """(byte planes of these columns, those of them that hold something else in between)."""
    if not indexes:
        return b"", []
    words = _words(code, [columns[index] for index in indexes])
    mixed: list[int] = []
    if words is None:
        mixed = [index for index in indexes if _words(code, [columns[index]]) is None]
        indexes[:] = [index for index in indexes if index not in mixed]
        words = _words(code, [columns[index] for index in indexes])
    if not words:
        return b"", mixed
    there, planes = 0, b""
    for plane in range(_WORD_BYTES):
        moved = _moved(words[plane::_WORD_BYTES], len(indexes))
        if moved != bytes(len(moved)):
            there |= 1 << plane
            planes += moved
    return bytes([there]) + planes, mixed


def _moved(plane: bytes, width: int) -> bytes:
    """Every row of `width` bytes XORed with the row before."""
    if plane[width:] == plane[:-width]:
        return plane[:width] + bytes(len(plane) - width)
    number = int.from_bytes(plane, "little")
    # What the last row leaves over is cut off.
    return (number ^ number << 8 * width).to_bytes(len(plane) + width, "little")[: len(plane)]


def _words(code: Code, columns: Sequence[Sequence[Any]]) -> bytes | None:
    """The values row by row as 64-bit words. None when some would not come back equal."""
    values = list(chain.from_iterable(zip(*columns, strict=True)))
    row = struct.Struct(f"<{len(values)}{code}")
    try:
        words = row.pack(*values)
    except (struct.error, OverflowError):
        return None
    # Among ints nothing is taken that is none. An int beyond 2^53 among floats would lose its last bits.
    if code == "q" or not words[_WORD_BYTES - 1 :: _WORD_BYTES].translate(None, _SMALL):
        return words
    return words if list(row.unpack(words)) == values else None


class Lane:
    """The varying columns of one type, read a row at a time: forward from where it stands, back from the beginning."""

    __slots__ = ("_at", "_planes", "_unpack", "_width", "_word")

    def __init__(self, code: Code, planes: bytes, columns: int, rows: int) -> None:
        """`planes`: a mask of those that are not all zeros, and these. ValueError when they do not hold so many."""
        there = [plane for plane in range(_WORD_BYTES) if planes[0] >> plane & 1]
        size = columns * rows
        if len(planes) != 1 + len(there) * size:
            raise ValueError("byte planes do not fit their columns")
        self._planes = [(plane, planes[1 + nth * size : 1 + nth * size + size]) for nth, plane in enumerate(there)]
        self._width = columns
        self._unpack = struct.Struct(f"<{columns}{code}").unpack
        self._at = -1
        self._word = 0

    def row(self, number: int) -> tuple[Any, ...]:
        """The values of one row."""
        if number < self._at:
            self._at, self._word = -1, 0
        row_bytes = _WORD_BYTES * self._width
        if number > self._at:
            rows = number - self._at
            word = int.from_bytes(self._words(self._at + 1, number + 1), "little")
            while rows > 1:
                # The later half onto the earlier one: in the end one row is left, the XOR of all.
                rows = (rows + 1) // 2
                half = 8 * row_bytes * rows
                word = (word >> half) ^ (word & ((1 << half) - 1))
            self._at, self._word = number, self._word ^ word
        return self._unpack(self._word.to_bytes(row_bytes, "little"))

    def rows(self, count: int) -> list[tuple[Any, ...]]:
        """The values of the first `count` rows."""
        words, row_bytes = self._words(0, count), _WORD_BYTES * self._width
        starts = range(0, len(words), row_bytes)
        moved = (int.from_bytes(words[start : start + row_bytes], "little") for start in starts)
        return [self._unpack(word.to_bytes(row_bytes, "little")) for word in accumulate(moved, xor)]

    def _words(self, first: int, end: int) -> bytearray:
        """Rows from `first` to before `end`, still XORed."""
        begin, stop = first * self._width, end * self._width
        words = bytearray(_WORD_BYTES * (stop - begin))
        for plane, data in self._planes:
            words[plane::_WORD_BYTES] = data[begin:stop]
        return words


class Table:
    """Columns that were packed by `pack`, to be read row by row."""

    __slots__ = ("_constant", "_count", "_lanes", "_mixed")

    def __init__(self, packed: Packed, count: int, base: Sequence[Number]) -> None:
        """`count` rows. ValueError when the parts do not fit together."""
        kinds, constants, mixed = packed.kinds, packed.constants, packed.mixed
        if len(kinds) != len(base) or len(constants) != kinds.count(CONSTANT) or len(mixed) != kinds.count(MIXED):
            raise ValueError("columns do not fit their schema")
        if kinds.translate(None, _KINDS) or any(len(column) != count for column in mixed):
            raise ValueError("a column of unknown kind or length")
        self._constant = list(base)
        for index, value in zip(_where(kinds, CONSTANT), constants, strict=True):
            self._constant[index] = value
        self._count = count
        self._mixed = list(zip(_where(kinds, MIXED), mixed, strict=True))
        self._lanes = [
            (where, Lane(code, planes, len(where), count)) for where, code, planes in _lanes(packed) if where or planes
        ]

    def row(self, number: int) -> list[Number]:
        """The numbers of one row."""
        row = self._constant.copy()
        for where, lane in self._lanes:
            for index, value in zip(where, lane.row(number), strict=True):
                row[index] = value
        for index, column in self._mixed:
            row[index] = column[number]
        return row

    def column(self, place: int) -> list[Number]:
        """One column over all rows."""
        for where, lane in self._lanes:
            if place in where:
                nth = where.index(place)
                return [values[nth] for values in lane.rows(self._count)]
        mixed = dict(self._mixed).get(place)
        return mixed if mixed is not None else [self._constant[place]] * self._count


def _lanes(packed: Packed) -> Iterator[tuple[list[int], Code, bytes]]:
    yield _where(packed.kinds, INTS), "q", packed.ints
    yield _where(packed.kinds, FLOATS), "d", packed.floats


def _where(kinds: bytes, kind: int) -> list[int]:
    return list(compress(range(len(kinds)), kinds.translate(_IS_KIND[kind]))) if kind in kinds else []
