"""Tar files from strangers: read as a stream, within bounds, nothing ever unpacked to a name of theirs."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Protocol

from ranktop.inspect.compressed import Zstd
from ranktop.inspect.found import MAX_FILE_BYTES, MAX_FILES, Found, Tree, is_proc_root, is_sys_root

MAX_UNPACKED_BYTES = 512 << 20
_TREE_FILE_BYTES = 1 << 20
_MAGIC = ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"))
_USTAR_OFFSET = 257
_SYS_FOLDERS = ("/block/", "/bus/", "/class/", "/dev/", "/devices/", "/firmware/", "/fs/", "/kernel/", "/module/")
_SYS_READ = ("/devices/system/node/", "/kernel/mm/", "/fs/cgroup/")
_ERRORS = (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError, ValueError)


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class TooMuchError(ValueError):
    """An archive unpacks to more than is read."""


def is_archive(data: bytes) -> bool:
    """A tar file, or anything that gzip, bzip2, xz or zstd wrote."""
    return _compression(data) is not None or data[_USTAR_OFFSET : _USTAR_OFFSET + 5] == b"ustar"


def read_archive(
    path: Path, name: str, scratch: Path, budget_bytes: int, account: Callable[[int], bool]
) -> Iterator[Found | Tree]:
    """The regular files in it; those of captured `/proc` and `/sys` trees go to `scratch` under plain names.

    `account` is told the size of every file and says whether there is room for it.
    """
    try:
        with open(path, "rb") as raw:
            head = raw.read(512)
            raw.seek(0)
            stream = _Bounded(_opened(raw, _compression(head)), min(budget_bytes, MAX_UNPACKED_BYTES))
            first = stream.peek(512)
            if first[_USTAR_OFFSET : _USTAR_OFFSET + 5] != b"ustar" and not _is_old_tar(first):
                yield _single(stream, path, name)
                return
            yield from _members(stream, name, scratch / str(len(list(scratch.iterdir()))), account)
    except TooMuchError as problem:
        yield Found(name, problem=f"left out from here on: {problem}")
    except _ERRORS as problem:
        yield Found(name, problem=f"damaged from here on: {' '.join(str(problem).split()) or type(problem).__name__}")


def _single(stream: _Bounded, path: Path, name: str) -> Found:
    """A compressed file that is no tar: a rotated log."""
    data = stream.read(MAX_FILE_BYTES)
    return Found(name, data, len(data), path.stat().st_mtime, problem=None)


def _members(stream: _Bounded, name: str, scratch: Path, account: Callable[[int], bool]) -> Iterator[Found | Tree]:
    refused = 0
    found: list[tuple[str, Found]] = []
    with tarfile.open(fileobj=stream, mode="r|") as archive:  # type: ignore[call-overload]
        for count, member in enumerate(archive):
            if count >= MAX_FILES:
                yield Found(name, problem=f"left out from here on: more than {MAX_FILES} members")
                break
            place = _plain(member.name)
            if not member.isreg() or place is None:
                refused += not member.isdir()
                continue
            file = archive.extractfile(member)
            if file is None:
                continue
            data = file.read(MAX_FILE_BYTES)
            full = f"{name}/{place}"
            if not account(len(data)):
                yield Found(full, problem="left out: enough was read already")
                break
            found.append((place, Found(full, data, member.size, float(member.mtime), member.size - len(data))))
    names = [place for place, _ in found]
    trees = set(_roots(names))
    for place, file in found:
        root = next((root for root in trees if place.startswith(root + "/") or not root), None)
        if root is None:
            yield file
        elif len(file.data) <= _TREE_FILE_BYTES and _is_read(place[len(root) :]):
            _store(scratch / place, file.data)
    for root in sorted(trees):
        kind = "proc" if root.rsplit("/", 1)[-1] == "proc" else "sys"
        yield Tree(f"{name}/{root}", kind, scratch / root)
    if refused:
        yield Found(name, problem=f"{refused} members left out: links, devices, absolute names or `..` are never read")


def _is_read(place: str) -> bool:
    """Whether a collector reads this file of a `/sys`; a captured one has tens of thousands. All of `/proc` is kept."""
    return place.startswith(_SYS_READ) or not place.startswith(_SYS_FOLDERS)


def _roots(names: list[str]) -> Iterator[str]:
    """Folders named `proc` or `sys` whose entries are those of such a tree."""
    entries: dict[str, set[str]] = {}
    for name in names:
        parts = name.split("/")
        for depth, part in enumerate(parts[:-1]):
            if part in ("proc", "sys"):
                entries.setdefault("/".join(parts[: depth + 1]), set()).add(parts[depth + 1])
                break
    for root, inside in entries.items():
        folder = root.rsplit("/", 1)[-1]
        is_root = is_proc_root if folder == "proc" else is_sys_root
        if is_root(folder, frozenset(inside)):
            yield root


def _store(path: Path, data: bytes) -> None:
    """Below the private scratch folder, by a name that `_plain` let through. Two files may claim one place."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError:
        # A name that is both a file and a folder in the archive: the first one stays.
        return


def _plain(name: str) -> str | None:
    """The member's name as a relative path below its archive; None for one that would leave it."""
    if name.startswith("/") or "\0" in name or len(name) > 1024:
        return None
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or max(map(len, parts)) > 255:
        return None
    return posixpath.join(*parts)


def _compression(data: bytes) -> str | None:
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


def _opened(raw: IO[bytes], compression: str | None) -> _Readable:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if compression == "bzip2":
        return bz2.BZ2File(raw)
    if compression == "zstd":
        return Zstd(raw)
    return lzma.LZMAFile(raw) if compression == "xz" else raw


def _is_old_tar(first: bytes) -> bool:
    """A v7 header has no magic: its checksum field tells."""
    try:
        return bool(first) and tarfile.TarInfo.frombuf(first, "utf-8", "replace").chksum > 0
    except tarfile.HeaderError:
        return False


class _Bounded(io.RawIOBase):
    """A stream that ends with TooMuchError after so many bytes, however small the archive was that they came from."""

    def __init__(self, stream: _Readable, limit_bytes: int) -> None:
        self._stream = stream
        self._left = limit_bytes
        self._limit = limit_bytes
        self._ahead = b""

    def peek(self, size: int) -> bytes:
        self._ahead += self._take(size - len(self._ahead))
        return self._ahead

    def read(self, size: int = -1) -> bytes:
        wanted = MAX_FILE_BYTES if size < 0 else min(size, MAX_FILE_BYTES)
        data, self._ahead = self._ahead[:wanted], self._ahead[wanted:]
        return data + self._take(wanted - len(data))

    def readable(self) -> bool:
        return True

    def _take(self, size: int) -> bytes:
        data = self._stream.read(size) if size > 0 else b""
        self._left -= len(data)
        if self._left < 0:
            raise TooMuchError(f"it unpacks to more than {self._limit >> 20} MiB")
        return data
