"""Reads what was given: files, folders, archives. Links and devices are listed and never followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from ranktop.inspect.archive import is_archive, read_archive
from ranktop.inspect.found import (
    HEAD_BYTES,
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_TOTAL_BYTES,
    Found,
    Tree,
    is_proc_root,
    is_sys_root,
)


class Reader:
    """Walks paths within bounds that hold for all together. `scratch` is an empty folder for trees of archives."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._files = 0
        self._bytes = 0

    def read(self, paths: Sequence[str]) -> Iterator[Found | Tree]:
        """What is at each path, in the order given; within a folder in the order of names."""
        for path in paths:
            # A path that the user types may be a link; what lies inside a folder may not.
            yield from self._path(Path(path), path, 0, follow=True)

    def _path(self, path: Path, name: str, depth: int, *, follow: bool = False) -> Iterator[Found | Tree]:
        try:
            status = path.stat() if follow else path.lstat()
        except OSError as error:
            yield Found(name, problem=f"cannot be read: {error.strerror}")
            return
        if stat.S_ISDIR(status.st_mode):
            yield from self._folder(path, name, depth)
        elif stat.S_ISREG(status.st_mode):
            yield from self._file(path, name)
        else:
            yield Found(name, problem=f"left out: {_kind(status.st_mode)}")

    def _folder(self, path: Path, name: str, depth: int) -> Iterator[Found | Tree]:
        if depth > MAX_DEPTH:
            yield Found(name, problem=f"left out: more than {MAX_DEPTH} folders deep")
            return
        try:
            names = sorted(os.listdir(path))
        except OSError as error:
            yield Found(name, problem=f"cannot be read: {error.strerror}")
            return
        entries = frozenset(names)
        for kind, is_root in (("proc", is_proc_root), ("sys", is_sys_root)):
            if is_root(path.name, entries):
                yield Tree(name, kind, path)
                return
        for entry in names:
            self._files += 1
            if self._files > MAX_FILES:
                yield Found(name, problem=f"left out from {entry!r} on: more than {MAX_FILES} files")
                return
            yield from self._path(path / entry, f"{name.rstrip('/')}/{entry}", depth + 1)

    def _file(self, path: Path, name: str) -> Iterator[Found | Tree]:
        found = read_bounded(path, name)
        if found.problem is None and is_archive(found.data):
            yield from read_archive(path, name, self._scratch, MAX_TOTAL_BYTES - self._bytes, self._account)
            return
        if not self._account(len(found.data)):
            yield Found(name, problem=f"left out: {MAX_TOTAL_BYTES >> 20} MiB were read already")
            return
        yield found

    def _account(self, size_bytes: int) -> bool:
        self._bytes += size_bytes
        return self._bytes <= MAX_TOTAL_BYTES


def read_bounded(path: Path, name: str) -> Found:
    """A regular file: all of it, or its beginning and its end."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        return Found(name, problem=f"cannot be read: {error.strerror}")
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return Found(name, problem=f"left out: {_kind(status.st_mode)}")
        # Pseudo files tell a size of 0 and have content.
        data = file.read(MAX_FILE_BYTES)
        skipped = max(0, status.st_size - len(data))
        if skipped:
            tail_bytes = MAX_FILE_BYTES - HEAD_BYTES
            file.seek(max(len(data), status.st_size - tail_bytes))
            tail = file.read(tail_bytes)
            kept = data[: MAX_FILE_BYTES - len(tail)]
            skipped = status.st_size - len(kept) - len(tail)
            data = kept + b"\n" + tail if skipped else kept + tail
        return Found(name, data, max(status.st_size, len(data)), status.st_mtime, skipped)


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link (links are not followed)"
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return "a pipe or a socket"
    return "a device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "no regular file"
