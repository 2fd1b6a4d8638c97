"""Small readers and parsers of `/proc` that several collectors share (proc(5))."""

from __future__ import annotations

import os
from typing import NamedTuple

CHUNK_BYTES = 65536
_PIECE_BYTES = 32768
"""Many times a status of a host of a thousand CPUs."""


class KeptFile:
    """A pseudo file that stays open and is read from its start again and again.

    An open `/proc/PID/...` belongs to that process for good: after its death reads fail with ESRCH, also when the
    pid has been given to another process.
    """

    __slots__ = ("_fd",)

    def __init__(self, path: str) -> None:
        self._fd = -1
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)

    def read(self, limit_bytes: int = 1 << 20) -> bytes:
        """The whole file, at most `limit_bytes` of it. Raises OSError as pread(2) does."""
        data = os.pread(self._fd, min(CHUNK_BYTES, limit_bytes), 0)
        while data and len(data) < limit_bytes:
            more = os.pread(self._fd, min(CHUNK_BYTES, limit_bytes - len(data)), len(data))
            if not more:
                break
            data += more
        return data

    def read_once(self) -> bytes:
        """In one pread(2), for a file that the kernel makes in one piece, as the status of a process."""
        return os.pread(self._fd, _PIECE_BYTES, 0)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


def read_file(path: str, limit_bytes: int = 1 << 20) -> bytes:
    """The whole of a pseudo file, at most `limit_bytes` of it. Raises OSError."""
    file = KeptFile(path)
    try:
        return file.read(limit_bytes)
    finally:
        file.close()


class Stat(NamedTuple):
    """What ranktop reads of `/proc/PID/stat`; times in clock ticks."""

    state: str
    parent_pid: int
    process_group: int
    start_ticks: int


def parse_stat(raw: bytes) -> Stat | None:
    """`/proc/PID/stat`. The name may hold spaces and brackets, so fields count from the last bracket."""
    fields = raw[raw.rfind(b")") + 2 :].split(maxsplit=20)
    if len(fields) < 20:
        return None
    try:
        return Stat(
            state=fields[0].decode("ascii", "replace"),
            parent_pid=int(fields[1]),
            process_group=int(fields[2]),
            start_ticks=int(fields[19]),
        )
    except ValueError:
        return None


def line_value(raw: bytes, key: bytes) -> bytes | None:
    """The stripped text after `key` (`b"VmSize:"`) at the start of a line, None where there is no such line."""
    start = 0 if raw.startswith(key) else raw.find(b"\n" + key) + 1
    if start == 0 and not raw.startswith(key):
        return None
    end = raw.find(b"\n", start)
    return raw[start + len(key) : end if end >= 0 else len(raw)].strip()


def kib_value(raw: bytes, key: bytes) -> int | None:
    """A `Key:   123 kB` line in bytes. None where it is absent or carries another unit."""
    value = line_value(raw, key)
    if value is None or not value.endswith(b" kB"):
        return None
    digits = value[:-3].strip()
    return int(digits) * 1024 if digits.isdigit() else None


def number_after(raw: bytes, key: bytes) -> int | None:
    """The number of a line `key 123`; `key` ends with its space. None where it is absent or no number."""
    value = line_value(raw, key)
    return int(value) if value is not None and value.isdigit() else None


def parse_counters(raw: bytes) -> dict[bytes, int]:
    """`key value` lines, as in vmstat, numastat and memory.stat. Lines that are not that are left out."""
    words = raw.split()
    if len(words) % 2 == 0:
        try:
            return dict(zip(words[::2], map(int, words[1::2]), strict=True))
        except ValueError:
            pass
    pairs = (line.split() for line in raw.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def parse_memlock_limit(limits: bytes) -> int | None:
    """The soft `Max locked memory` of `/proc/PID/limits` in bytes, -1 for unlimited."""
    value = line_value(limits, b"Max locked memory")
    words = value.split() if value else []
    if not words:
        return None
    if words[0] == b"unlimited":
        return -1
    return int(words[0]) if words[0].isdigit() and words[-1] == b"bytes" else None


def environ_value(environ: bytes, name: str) -> str | None:
    """One variable of `/proc/PID/environ`, which holds the environment at exec and no later change."""
    key = name.encode() + b"="
    for entry in environ.split(b"\0"):
        if entry.startswith(key):
            return entry[len(key) :].decode("utf-8", "replace")
    return None
