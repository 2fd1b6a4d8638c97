"""Zstandard (RFC 8878), as logrotate and `tar --zstd` write it: an extra until Python itself reads it."""

from __future__ import annotations

from typing import IO

_MAX_WINDOW_BYTES = 128 << 20
"""What `zstd -d` itself takes without being told; a frame may ask for more memory than the file has bytes."""


class NotInstalledError(Exception):
    """What is needed to read this, and how to get it."""


class Zstd:
    """A decompressed stream over all frames of the file. OSError when it is damaged; NotInstalledError."""

    def __init__(self, raw: IO[bytes]) -> None:
        try:
            import zstandard
        except ImportError as problem:
            raise NotInstalledError("zstd needs zstandard (pip install 'ranktop[zstd]')") from problem
        self._error = zstandard.ZstdError
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
        self._stream = decompressor.stream_reader(raw, read_across_frames=True)

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self._stream.read(size)
        except self._error as problem:
            raise OSError(str(problem)) from problem
