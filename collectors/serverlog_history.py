"""Starts in the older files of a log: rotated ones, earlier restarts of a container, some of them compressed."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

from collectors.serverlog_prefix import MAX_ARGS_CHARACTERS

MAX_FILES = 5
MAX_BYTES = 64 << 20
"""Most that is read of all older files together, after decompression."""

_MARK = b"server_args="
_STEP_BYTES = 1 << 20


def older_starts(paths: Sequence[Path], wanted: int) -> list[bytes]:
    """Up to `wanted` newest lines with server arguments, oldest first. `paths` newest first; unreadable ones are
    passed over."""
    found: list[bytes] = []
    left = MAX_BYTES
    for path in paths[:MAX_FILES]:
        if len(found) >= wanted or left <= 0:
            break
        starts, read = _starts_in(path, left)
        left -= read
        found = [*starts[-(wanted - len(found)) :], *found]
    return found


def _starts_in(path: Path, most_bytes: int) -> tuple[list[bytes], int]:
    """Lines with server arguments of one file, and the bytes read."""
    starts: list[bytes] = []
    read = 0
    rest = b""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while read < most_bytes and (data := file.read(_STEP_BYTES)):
                read += len(data)
                *lines, rest = (rest + data).split(b"\n")
                starts += [line[:MAX_ARGS_CHARACTERS] for line in lines if _MARK in line]
                rest = rest[:MAX_ARGS_CHARACTERS]
    except (OSError, EOFError, zlib.error):
        pass
    if _MARK in rest:
        starts.append(rest)
    return starts, read
