"""One file that was given, found in a folder or in an archive, and the bounds within which it is read."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

MAX_FILE_BYTES = 24 << 20
"""Of a longer file the beginning and the end are read: some seconds for a log."""
HEAD_BYTES = 8 << 20
MAX_TOTAL_BYTES = 256 << 20
"""Of all files together, archives unpacked."""
MAX_FILES = 20_000
MAX_DEPTH = 32
MAX_LINE_CHARACTERS = 262_144
"""A `server_args` line of 0.5.23 is about 40,000 characters; of a longer line the beginning is read."""


class Found(Struct, frozen=True):
    """A file's content, or why there is none. `name` is what a person would call it, never opened again."""

    name: str
    data: bytes = b""
    size_bytes: int = 0
    written_unix_seconds: float | None = None
    skipped_bytes: int = 0
    """What was left out between its beginning and its end."""
    problem: str | None = None


class Tree(Struct, frozen=True):
    """A captured `/proc` or `/sys` on disk, read by the collectors themselves."""

    name: str
    kind: str
    """`proc` or `sys`."""
    root: Path


def is_proc_root(folder: str, names: frozenset[str]) -> bool:
    """Whether a folder of that name with these entries is a `/proc`. A loose meminfo beside a log makes none."""
    has_processes = any(name.isdigit() for name in names)
    if folder == "proc":
        return "stat" in names or ("meminfo" in names and has_processes)
    return has_processes and {"stat", "meminfo"} <= names


def is_sys_root(folder: str, names: frozenset[str]) -> bool:
    """Whether a folder of that name with these entries is a `/sys`."""
    return "devices" in names and (folder == "sys" or {"bus", "class", "kernel"} <= names)
