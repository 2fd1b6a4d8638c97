"""One flipped bit found by its crc32, and blobs that carry a crc32 for each piece, so that every piece may have one.

The crc32 of a message differs from the right one by a number that tells which bit was flipped: the numbers of all bits
are different up to half a gigabyte. Damage of another kind looks like one flipped bit with a probability of the
message's bits / 2^32: what was mended needs another proof than that sum, or to be told as mended.
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Iterator
from itertools import islice, product
from typing import TypeVar

PIECE_BYTES = 1024
"""A page of the file has 4096: a flipped bit in each of them is at most one in a piece, or two where it has parts of
two pages."""

_MAX_CANDIDATES = 64

Data = TypeVar("Data", bytes, memoryview)

_SUM_BYTES = 4
_TABLE = [zlib.crc32(bytes([byte])) ^ zlib.crc32(b"\0") for byte in range(256)]
_BY_HIGH_BYTE = {entry >> 24: byte for byte, entry in enumerate(_TABLE)}
_BIT_OF = {_TABLE[1 << bit]: bit for bit in range(8)}


def flipped_bit(difference: int, size: int) -> tuple[int, int] | None:
    """(byte, bit) of a message of `size` bytes, `difference` being its crc32 XOR the right one. None: no single bit."""
    for byte in range(size - 1, -1, -1):
        bit = _BIT_OF.get(difference)
        if bit is not None:
            return byte, bit
        # The step that crc32 takes for a byte of zeros, undone.
        last = _BY_HIGH_BYTE[difference >> 24]
        difference = ((difference ^ _TABLE[last]) << 8 | last) & 0xFFFFFFFF
    return None


def mended(data: bytes, right_sum: int) -> bytes | None:
    """The bytes with the one bit turned that makes their crc32 right; as they are when only the sum has one flipped."""
    difference = zlib.crc32(data) ^ right_sum
    if difference & (difference - 1) == 0:
        return data
    found = flipped_bit(difference, len(data))
    if found is None:
        return None
    byte, bit = found
    return data[:byte] + bytes([data[byte] ^ 1 << bit]) + data[byte + 1 :]


def with_sums(data: bytes) -> bytes:
    """The bytes, then the crc32 of each of their pieces, little end first."""
    return data + _sums(data)


def without_sums(blob: bytes) -> bytes | None:
    """What `with_sums` was given. None when the sums do not hold."""
    end = _end(blob)
    return blob[:end] if _sums(blob[:end]) == blob[end:] else None


def mended_by_sums(blob: bytes) -> Iterator[bytes]:
    """What `with_sums` may have made of it: each piece has two flipped bits at most, or one and its sum one.

    The first is the likeliest. Another proof must tell which is right: of damage of another kind one piece in a hundred
    passes for two flipped bits.
    """
    end = _end(blob)
    whole: list[list[bytes]] = []
    for number, piece in enumerate(_pieces(blob[:end])):
        place = end + _SUM_BYTES * number
        right_sum = int.from_bytes(blob[place : place + _SUM_BYTES], "little")
        one = _with_one_turned(piece, zlib.crc32(piece) ^ right_sum)
        whole.append([one] if one is not None else list(_with_two_turned(piece, zlib.crc32(piece) ^ right_sum)))
    for pieces in islice(product(*whole), _MAX_CANDIDATES):
        yield with_sums(b"".join(pieces))


def _with_one_turned(piece: bytes, difference: int) -> bytes | None:
    """`difference`: its crc32 XOR the right one, which may itself have a flipped bit."""
    if difference & (difference - 1) == 0:
        return piece
    bits = _bits_of_a_piece()
    for flip in (0, *(1 << bit for bit in range(8 * _SUM_BYTES))):
        from_end, bit = bits.get(difference ^ flip, (len(piece), 0))
        if from_end < len(piece):
            return _turned(piece, (from_end, bit))
    return None


def _with_two_turned(piece: bytes, difference: int) -> Iterator[bytes]:
    """A piece that stands on two pages of the file may have a flipped bit of each."""
    bits = _bits_of_a_piece()
    for one, place in bits.items():
        other = bits.get(difference ^ one, (len(piece), 0))
        # Every pair is met twice.
        if place < other and other[0] < len(piece):
            yield _turned(piece, place, other)


def _turned(piece: bytes, *places: tuple[int, int]) -> bytes:
    turned = bytearray(piece)
    for from_end, bit in places:
        turned[-1 - from_end] ^= 1 << bit
    return bytes(turned)


@functools.cache
def _bits_of_a_piece() -> dict[int, tuple[int, int]]:
    """(byte, from the end; bit) by what its flip makes of the crc32, for all bits of a piece."""
    found: dict[int, tuple[int, int]] = {}
    for bit in range(8):
        difference = _TABLE[1 << bit]
        for from_end in range(PIECE_BYTES):
            found[difference] = (from_end, bit)
            difference = difference >> 8 ^ _TABLE[difference & 0xFF]
    return found


def _end(blob: bytes) -> int:
    """Where the sums begin."""
    return len(blob) - _SUM_BYTES * -(-len(blob) // (PIECE_BYTES + _SUM_BYTES))


def _sums(data: bytes) -> bytes:
    sums = list(map(zlib.crc32, _pieces(memoryview(data))))
    return _struct(len(sums)).pack(*sums)


def _pieces(data: Data) -> list[Data]:
    return [data[begin : begin + PIECE_BYTES] for begin in range(0, len(data), PIECE_BYTES)]


@functools.lru_cache(64)
def _struct(sums: int) -> struct.Struct:
    return struct.Struct(f"<{sums}I")
