"""Rows of numbers in msgpack, one after the other in time: what moves of their bytes, XORed with the row before.

A minute of a node is mostly constants. It is looked through as the bytes that stand there already, a row as one integer
and a byte of all rows as one slice, so that no Python loop runs over values. What moves are a few low bytes of a
number; these are kept row by row, mostly zeros for a compressor that finds runs, and one row is read without undoing
those after it. It takes rows of one length, which they are while no int outgrows its msgpack (at 2^7, 2^8, 2^16, 2^32):
columns where that happens are kept apart.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import accumulate
from operator import or_, xor
from typing import NamedTuple

import msgspec

from ranktop.recording.layout import Number

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Number]).decode

_ANY_TO_ONE = b"\0" + bytes([1]) * 255

Uneven = dict[int, list[Number]]
"""Columns by their place in a row, which holds what `base` has there instead."""


class Packed(NamedTuple):
    """Rows of one length.

    `first` is XORed with the base when that has its length. `steps` lead, from before the first byte, to those that are
    not the same in all rows; `moved` holds these bytes of every later row, XORed with those of the row before.
    """

    first: bytes
    steps: list[int]
    moved: bytes
    uneven: Uneven


def pack(rows: Sequence[bytes], base: bytes) -> Packed:
    """`rows`, and `base` too: lists of as many numbers each, in msgpack."""
    uneven: Uneven = {}
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        rows, uneven = _evened(rows, base)
        width = len(rows[0])
    first = _xored(rows[0], base) if len(base) == width else rows[0]
    steps = _steps(rows)
    joined = b"".join(rows)
    columns = b"".join([joined[place::width] for place in _places(steps)])
    lines = b"".join([columns[nth :: len(rows)] for nth in range(len(rows))])
    return Packed(first, steps, _xored(lines[len(steps) :], lines[: -len(steps) or None]), uneven)


def _steps(rows: Sequence[bytes]) -> list[int]:
    """From before the first byte of a row to the first that is not the same in all rows, and on to the next."""
    numbers = [int.from_bytes(row, "little") for row in rows]
    varying = reduce(or_, map(xor, numbers, numbers[1:]), 0).to_bytes(len(rows[0]), "little")
    return [len(still) + 1 for still in varying.translate(_ANY_TO_ONE).split(b"\1")[:-1]]


def _places(steps: Sequence[int]) -> list[int]:
    return list(accumulate(steps, initial=-1))[1:]


def _xored(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).to_bytes(len(one), "little")


def deflate(data: bytes) -> bytes:
    """Such rows compressed by their runs alone: smaller than zlib's level 4 makes them, in less than half its time."""
    stream = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_RLE)
    return stream.compress(data) + stream.flush()


def numbers_of(row: bytes) -> list[Number]:
    """What one row holds. msgspec.MsgspecError when it is no list of numbers."""
    return _decode(row)


class Rows:
    """What `pack` made, read a row at a time: forward from where it stands, back from the beginning."""

    __slots__ = ("_at", "_count", "_first", "_moved", "_places", "_uneven", "_word")

    def __init__(self, packed: Packed, base: bytes, count: int) -> None:
        """ValueError when these are no `count` rows."""
        first, steps, moved, self._uneven = packed
        self._first = _xored(first, base) if len(base) == len(first) else first
        self._places = _places(steps)
        if len(moved) != (count - 1) * len(steps) or any(len(column) != count for column in self._uneven.values()):
            raise ValueError("bytes do not fit their rows")
        if any(step < 1 for step in steps) or (steps and self._places[-1] >= len(first)):
            raise ValueError("bytes beyond the end of a row")
        self._moved = moved
        self._count = count
        self._at, self._word = 0, 0

    def row(self, number: int) -> list[Number]:
        """The numbers of one row. IndexError or msgspec.MsgspecError when it holds something else."""
        if number < self._at:
            self._at, self._word = 0, 0
        if number > self._at:
            rows, width = number - self._at, len(self._places)
            word = int.from_bytes(self._moved[self._at * width : number * width], "little")
            while rows > 1:
                # The later half onto the earlier one: in the end one row is left, the XOR of all.
                rows = (rows + 1) // 2
                half = 8 * width * rows
                word = (word >> half) ^ (word & ((1 << half) - 1))
            self._at, self._word = number, self._word ^ word
        return self._read(self._word, number)

    def rows(self) -> Iterator[list[Number]]:
        """The numbers of all rows; raises as `row` does."""
        return map(self.row, range(self._count))

    def _read(self, word: int, number: int) -> list[Number]:
        row = bytearray(self._first)
        for place, byte in zip(self._places, word.to_bytes(len(self._places), "little"), strict=True):
            row[place] ^= byte
        numbers = _decode(row)
        for place, column in self._uneven.items():
            numbers[place] = column[number]
        return numbers


def _evened(rows: Sequence[bytes], base: bytes) -> tuple[Sequence[bytes], Uneven]:
    """The rows at one length, and the columns without which they have it."""
    held, instead = [numbers_of(row) for row in rows], numbers_of(base)
    uneven: Uneven = {}
    # One row of each length tells which columns these are, but when one grew as another shrank.
    for some in (list({len(row): numbers for row, numbers in zip(rows, held, strict=True)}.values()), held):
        sizes = [[len(_encode(number)) for number in numbers] for numbers in some]
        places = [place for place, column in enumerate(zip(*sizes, strict=True)) if len({*column}) > 1]
        uneven |= {place: [numbers[place] for numbers in held] for place in places}
        for numbers in held:
            for place in places:
                numbers[place] = instead[place]
        rows = [_encode(numbers) for numbers in held]
        if all(len(row) == len(rows[0]) for row in rows):
            break
    return rows, uneven
