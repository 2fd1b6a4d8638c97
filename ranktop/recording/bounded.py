"""Decompression that a bomb cannot abuse."""

from __future__ import annotations

import zlib


def inflate(blob: bytes, at_most_bytes: int) -> bytes:
    """The decompressed bytes; what stands behind them is left alone.

    ValueError when they are damaged, or would be more than `at_most_bytes`.
    """
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(blob, at_most_bytes)
    except zlib.error as problem:
        raise ValueError(str(problem)) from problem
    if not stream.eof:
        raise ValueError(f"cut short, or larger than {at_most_bytes} bytes")
    return data
