"""Rows of numbers as columns: what stands still costs nothing, what moves is XORed with its neighbour in time.

A minute of a node is mostly constants. A column that varies and holds only ints, or only floats, is laid as 64-bit
words, XORed with the word before it and cut into byte planes, where zlib finds long runs of zeros. XOR and its inverse
work on one big integer for all columns at once, so that no Python loop runs over values. Lossless for every finite
float, for ints of -2^63 to 2^64-1, for None and for bool. Equal values are one value: the field's type says whether 1
is an int, a float or True, and -0.0 may come back as 0.0.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from itertools import chain, compress
from itertools import count as counted
from typing import Any, Literal

from ranktop.recording.layout import Number

BASE, CONSTANT, INTS, FLOATS, MIXED = range(5)
"""Kinds of a column: always what the schema's base row says, another constant, varying ints, floats, or anything."""

_IS_KIND = {kind: bytes(byte == kind for byte in range(256)) for kind in (CONSTANT, INTS, FLOATS, MIXED)}
_WORD_BYTES = 8
_BYTE_ORDER: Literal["little"] = "little"
_INT64 = range(-(1 << 63), 1 << 63)


class Lanes:
    """The varying columns of many tables, one lane of ints and one of floats, all of a chunk in one block each."""

    __slots__ = ("floats", "ints")

    def __init__(self) -> None:
        self.ints: list[Sequence[Any]] = []
        self.floats: list[Sequence[Any]] = []

    def packed(self) -> tuple[bytes, bytes]:
        """Both lanes as byte planes."""
        return _planes(_packed("q", self.ints)), _planes(_packed("d", self.floats))


class Unpacked:
    """Both lanes, read from the front."""

    __slots__ = ("_float_at", "_int_at", "floats", "ints")

    def __init__(self, ints: bytes, floats: bytes) -> None:
        self.ints: array[int] = array("q")
        self.ints.frombytes(_from_planes(ints))
        self.floats: array[float] = array("d")
        self.floats.frombytes(_from_planes(floats))
        self._int_at = self._float_at = 0

    def skip_ints(self, count: int) -> int:
        """Where the next `count` ints begin. ValueError when there are fewer."""
        self._int_at += count
        if self._int_at > len(self.ints):
            raise ValueError("fewer ints than told")
        return self._int_at - count

    def skip_floats(self, count: int) -> int:
        """Where the next `count` floats begin. ValueError when there are fewer."""
        self._float_at += count
        if self._float_at > len(self.floats):
            raise ValueError("fewer floats than told")
        return self._float_at - count


def pack(
    rows: Sequence[Sequence[Number]], base: Sequence[Number], lanes: Lanes
) -> tuple[bytes, list[Number], list[Any]]:
    """(kind of every column, other constants, mixed columns) of rows of one length; the varying go to `lanes`."""
    kinds = bytearray(len(base))
    constants: list[Number] = []
    mixed: list[Any] = []
    count = len(rows)
    for index, column in enumerate(zip(*rows, strict=True)):
        first = column[0]
        if column.count(first) == count:
            if first != base[index]:
                kinds[index] = CONSTANT
                constants.append(first)
            continue
        types = set(map(type, column))
        if types == {float}:
            kinds[index] = FLOATS
            lanes.floats.append(column)
        elif types == {int} and min(column) in _INT64 and max(column) in _INT64:
            kinds[index] = INTS
            lanes.ints.append(column)
        else:
            kinds[index] = MIXED
            mixed.append(column)
    return bytes(kinds), constants, mixed


class Table:
    """Columns that were packed by `pack`, to be read row by row."""

    __slots__ = ("_cells", "_floats", "_ints", "_row")

    def __init__(
        self,
        kinds: bytes,
        constants: list[Number],
        mixed: list[list[Number]],
        count: int,
        base: Sequence[Number],
        lanes: Unpacked,
    ) -> None:
        """ValueError when the parts do not fit together."""
        if len(kinds) != len(base) or len(constants) != kinds.count(CONSTANT) or len(mixed) != kinds.count(MIXED):
            raise ValueError("columns do not fit their schema")
        if max(kinds, default=0) > MIXED or any(len(column) != count for column in mixed):
            raise ValueError("a column of unknown kind or length")
        self._row = list(base)
        for index, value in zip(_where(kinds, CONSTANT), constants, strict=True):
            self._row[index] = value
        ints, floats = _where(kinds, INTS), _where(kinds, FLOATS)
        self._ints = list(zip(ints, counted(lanes.skip_ints(count * len(ints)), count), strict=False))
        self._floats = list(zip(floats, counted(lanes.skip_floats(count * len(floats)), count), strict=False))
        self._cells = list(zip(_where(kinds, MIXED), mixed, strict=True))

    def row(self, number: int, lanes: Unpacked) -> list[Number]:
        """The numbers of one row."""
        row = self._row.copy()
        ints, floats = lanes.ints, lanes.floats
        for index, start in self._ints:
            row[index] = ints[start + number]
        for index, start in self._floats:
            row[index] = floats[start + number]
        for index, column in self._cells:
            row[index] = column[number]
        return row


def _where(kinds: bytes, kind: int) -> list[int]:
    return list(compress(range(len(kinds)), kinds.translate(_IS_KIND[kind])))


def _packed(code: Literal["q", "d"], columns: list[Sequence[Any]]) -> bytes:
    values = list(chain.from_iterable(columns))
    return struct.pack(f"={len(values)}{code}", *values)


def _planes(raw: bytes) -> bytes:
    number = int.from_bytes(raw, _BYTE_ORDER)
    mixed = (number ^ (number << 64)) & ((1 << (8 * len(raw))) - 1)
    raw = mixed.to_bytes(len(raw), _BYTE_ORDER)
    return b"".join(raw[plane::_WORD_BYTES] for plane in range(_WORD_BYTES))


def _from_planes(planes: bytes) -> bytes:
    if len(planes) % _WORD_BYTES:
        raise ValueError("byte planes of unequal length")
    count = len(planes) // _WORD_BYTES
    raw = bytearray(len(planes))
    for plane in range(_WORD_BYTES):
        raw[plane::_WORD_BYTES] = planes[plane * count : (plane + 1) * count]
    number = int.from_bytes(raw, _BYTE_ORDER)
    mask = (1 << (8 * len(raw))) - 1
    # Prefix XOR in log2(count) steps: each word becomes the XOR of all words up to it.
    shift = 64
    while shift < 8 * len(raw):
        number ^= (number << shift) & mask
        shift *= 2
    return number.to_bytes(len(raw), _BYTE_ORDER)
