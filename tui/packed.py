"""Texts that are nearly alike, kept small: one is compressed against another, piece by piece.

Deflate looks back 32 KiB and a verdict is larger, so each piece is given the same place of the other text to look at.
"""

from __future__ import annotations

import zlib

_PIECE_BYTES = 24_000
_BESIDE_BYTES = 4_000
"""What stands before and behind moves a little from one text to the next."""
_LEVEL = 3
"""Against level 1 a quarter smaller in the same time, as less is left to write."""


def packed(text: bytes, like: bytes) -> bytes:
    """`text`, to be unpacked with the same `like`. Zlib streams (RFC 1950), one behind the other."""
    return b"".join(_piece(text, like, begin) for begin in range(0, len(text), _PIECE_BYTES))


def unpacked(data: bytes, like: bytes) -> bytes:
    """What was packed. zlib.error when it was packed with another `like`."""
    pieces: list[bytes] = []
    while data:
        stream = zlib.decompressobj(zdict=_beside(like, len(pieces) * _PIECE_BYTES))
        pieces.append(stream.decompress(data))
        data = stream.unused_data
    return b"".join(pieces)


def _piece(text: bytes, like: bytes, begin: int) -> bytes:
    stream = zlib.compressobj(_LEVEL, zdict=_beside(like, begin))
    return stream.compress(text[begin : begin + _PIECE_BYTES]) + stream.flush()


def _beside(like: bytes, begin: int) -> bytes:
    return like[max(0, begin - _BESIDE_BYTES) : begin + _PIECE_BYTES + _BESIDE_BYTES]
