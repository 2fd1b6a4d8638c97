"""One flipped bit found by its crc32, and blobs that carry a crc32 for each piece, so that every piece may have one.

The crc32 of a message differs from the right one by a number that tells which bit was flipped: the numbers of all bits
are different up to half a gigabyte. Damage of another kind looks like one flipped bit with a probability of the
message's bits / 2^32: what was mended needs another proof than that sum, or to be told as mended.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

PIECE_BYTES = 1024
"""A page of the file has 4096: a flipped bit in each of them is at most one in a piece."""

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
    return data + b"".join(zlib.crc32(piece).to_bytes(_SUM_BYTES, "little") for piece in _pieces(data))


def mended_by_sums(blob: bytes) -> bytes | None:
    """What `with_sums` made, of which each piece and each sum has one flipped bit at most. None where one has more."""
    count = -(-len(blob) // (PIECE_BYTES + _SUM_BYTES))
    end = len(blob) - _SUM_BYTES * count
    pieces: list[bytes] = []
    for number, piece in enumerate(_pieces(blob[:end])):
        place = end + _SUM_BYTES * number
        right_sum = int.from_bytes(blob[place : place + _SUM_BYTES], "little")
        tried = (mended(piece, right_sum ^ flip) for flip in (0, *(1 << bit for bit in range(8 * _SUM_BYTES))))
        whole = next((found for found in tried if found is not None), None)
        if whole is None:
            return None
        pieces.append(whole)
    return with_sums(b"".join(pieces))


def _pieces(data: bytes) -> Iterator[bytes]:
    return (data[begin : begin + PIECE_BYTES] for begin in range(0, len(data), PIECE_BYTES))
