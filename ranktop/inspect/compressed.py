"""Zstandard (RFC 8878), as logrotate and `tar --zstd` write it."""

from __future__ import annotations

from typing import IO

import zstandard

_MAX_WINDOW_BYTES = 128 << 20
"""What `zstd -d` itself takes without being told; a frame may ask for more memory than the file has bytes."""


class Zstd:
    """A decompressed stream over all frames of the file. OSError when it is damaged."""

    def __init__(self, raw: IO[bytes]) -> None:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
        self._stream = decompressor.stream_reader(raw, read_across_frames=True)

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self._stream.read(size)
        except zstandard.ZstdError as problem:
            raise OSError(str(problem)) from problem
