"""Rows of numbers in msgpack, one after the other in time, each XORed with the row before.

A minute of a node is mostly constants: what stands still becomes zeros, what moves a few low bytes, and the compressor
finds long runs. It works on bytes that stand there already, a minute at a time as one big integer, so that no Python
loop runs over values; and one row is read without undoing those after it. It takes rows of one length, which they
are as long as no int outgrows its msgpack (at 2^7, 2^8, 2^16, 2^32): columns where that happens are kept apart.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from operator import xor

import msgspec

from ranktop.recording.layout import Number

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Number]).decode

_MEMORY_LEVEL = 7
"""One less than zlib's own: more tables of codes, as every part of a sample has its own statistics; 1 % smaller."""

Uneven = dict[int, list[Number]]
"""Columns by their place in a row, which holds what `base` has there instead."""


def pack(rows: Sequence[bytes], base: bytes) -> tuple[bytes, Uneven]:
    """(the rows XORed with their neighbours, the first one with `base` if that has their length; columns kept apart).

    `rows`: lists of as many numbers each, in msgpack.
    """
    uneven: Uneven = {}
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        rows, uneven = _evened(rows, base)
        width = len(rows[0])
    # Little end first: each row is XORed with the one that stands before it, and the last one is left over.
    joined = b"".join((_fitting(base, width), *rows))
    number = int.from_bytes(joined, "little")
    return (number ^ number >> 8 * width).to_bytes(len(joined), "little")[:-width], uneven


def deflate(data: bytes) -> bytes:
    """Such rows compressed by their runs alone: smaller than zlib's level 4 makes them, in less than its time."""
    stream = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS, _MEMORY_LEVEL, zlib.Z_RLE)
    return stream.compress(data) + stream.flush()


def numbers_of(row: bytes) -> list[Number]:
    """What one row holds. msgspec.MsgspecError when it is no list of numbers."""
    return _decode(row)


class Rows:
    """What `pack` made, read a row at a time: forward from where it stands, back from the beginning."""

    __slots__ = ("_at", "_base", "_count", "_moved", "_uneven", "_width", "_word")

    def __init__(self, moved: bytes, uneven: Mapping[int, Sequence[Number]], base: bytes, count: int) -> None:
        """ValueError when these are no `count` rows."""
        self._width, rest = divmod(len(moved), count)
        if rest or not self._width or any(len(column) != count for column in uneven.values()):
            raise ValueError("bytes do not fit their rows")
        self._moved = moved
        self._uneven = uneven
        self._count = count
        self._base = int.from_bytes(_fitting(base, self._width), "little")
        self._at, self._word = -1, self._base

    def row(self, number: int) -> list[Number]:
        """The numbers of one row. ValueError, IndexError or msgspec.MsgspecError when it holds something else."""
        if number < self._at:
            self._at, self._word = -1, self._base
        if number > self._at:
            rows = number - self._at
            word = int.from_bytes(self._moved[(self._at + 1) * self._width : (number + 1) * self._width], "little")
            while rows > 1:
                # The later half onto the earlier one: in the end one row is left, the XOR of all.
                rows = (rows + 1) // 2
                half = 8 * self._width * rows
                word = (word >> half) ^ (word & ((1 << half) - 1))
            self._at, self._word = number, self._word ^ word
        return self._read(self._word, number)

    def rows(self) -> Iterator[list[Number]]:
        """The numbers of all rows; raises as `row` does."""
        starts = range(0, len(self._moved), self._width)
        moved = (int.from_bytes(self._moved[start : start + self._width], "little") for start in starts)
        words = accumulate(moved, xor, initial=self._base)
        next(words)
        return (self._read(word, number) for number, word in enumerate(words))

    def _read(self, word: int, number: int) -> list[Number]:
        numbers = numbers_of(word.to_bytes(self._width, "little"))
        for place, column in self._uneven.items():
            numbers[place] = column[number]
        return numbers


def _fitting(base: bytes, width: int) -> bytes:
    return base if len(base) == width else bytes(width)


def _evened(rows: Sequence[bytes], base: bytes) -> tuple[list[bytes], Uneven]:
    """The rows at one length, and the columns without which they have it."""
    held, instead = [numbers_of(row) for row in rows], numbers_of(base)
    columns = list(zip(*held, strict=True))
    uneven: Uneven = {}
    # The quick look takes longer and shorter values for even ones when they are as long as the first in all.
    for is_uneven in (_looks_uneven, _is_uneven):
        uneven = {place: list(column) for place, column in enumerate(columns) if is_uneven(column)}
        rows = _without(held, uneven, instead)
        if all(len(row) == len(rows[0]) for row in rows):
            break
    return rows, uneven


def _looks_uneven(column: tuple[Number, ...]) -> bool:
    return len(_encode(column)) != len(_encode(column[:1] * len(column)))


def _is_uneven(column: tuple[Number, ...]) -> bool:
    return len({len(_encode(number)) for number in column}) > 1


def _without(held: list[list[Number]], uneven: Uneven, instead: list[Number]) -> list[bytes]:
    for numbers in held:
        for place in uneven:
            numbers[place] = instead[place]
    return [_encode(numbers) for numbers in held]
