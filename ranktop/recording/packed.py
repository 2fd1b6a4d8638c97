"""Blobs as `block` and `series` hold them: a zstd frame, a digest of it, and the sums of its pieces.

The digest tells whether a frame in which flipped bits were turned back is the one that was written, also where the
dictionary that it needs is not at hand.
"""

from __future__ import annotations

import hashlib

import zstandard

from ranktop.recording.flips import with_sums, without_sums

LEVEL = 2
"""As small as levels up to 9 make a minute, at a fifth of their time (docs/performance.md)."""

_DIGEST_BYTES = 16


def pack(data: bytes, base: bytes = b"") -> bytes:
    """`base`: what it resembles; the same is needed to unpack it."""
    compressor = zstandard.ZstdCompressor(level=LEVEL, dict_data=dictionary(base), write_checksum=True)
    frame = compressor.compress(data)
    return with_sums(_digest(frame) + frame)


def unpack(blob: bytes, at_most_bytes: int, base: bytes = b"") -> bytes:
    """What `pack` was given. ValueError when it is damaged, or says that it is more than `at_most_bytes`."""
    frame = _frame(blob)
    if frame is None:
        raise ValueError("its checksums do not hold")
    try:
        size = zstandard.get_frame_parameters(frame).content_size
        # A frame that does not tell its size would get a buffer of the largest one.
        if size > at_most_bytes:
            raise ValueError(f"larger than {at_most_bytes} bytes")
        return zstandard.ZstdDecompressor(dict_data=dictionary(base)).decompress(frame, max_output_size=size)
    except zstandard.ZstdError as problem:
        raise ValueError(str(problem)) from problem


def is_whole(blob: bytes) -> bool:
    """Whether it is what `pack` made."""
    return _frame(blob) is not None


def _frame(blob: bytes) -> bytes | None:
    data = without_sums(blob)
    if data is None or data[:_DIGEST_BYTES] != _digest(data[_DIGEST_BYTES:]):
        return None
    return data[_DIGEST_BYTES:]


def _digest(frame: bytes) -> bytes:
    return hashlib.blake2b(frame, digest_size=_DIGEST_BYTES).digest()


def dictionary(base: bytes) -> zstandard.ZstdCompressionDict | None:
    """For zstd: what a frame may resemble. None of nothing."""
    return zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT) if base else None
