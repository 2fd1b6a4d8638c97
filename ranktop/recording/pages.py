"""SQLite's file and log read page by page, without SQLite: every row that still looks like one.

Format of pages, cells and records: sqlite.org/fileformat2.html. Whether a row is what was written, its checksum says.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any

from ranktop.recording.connection import MAX_VALUE_BYTES
from ranktop.recording.errors import RecordingError

_LEAF = 0x0D
_DEFAULT_PAGE_BYTES = 4096
_SMALLEST_PAGE_BYTES = 512
_WAL_HEADER_BYTES = 32
_WAL_FRAME_BYTES = 24
_MAX_FILE_BYTES = 16 << 30
_MAX_LOG_BYTES = 64 << 20
"""A recorder's log has 4 MB: of a larger one nobody wants to wait for the sums."""

_MAX_COLUMNS = 64
_INT_BYTES = (0, 1, 2, 3, 4, 6, 8)

Payload = tuple[Any, ...]
Data = mmap.mmap | bytes


def rows_of(path: str, *, log_only: bool = False) -> Iterator[tuple[int, Payload]]:
    """(rowid, values) of everything in a database and its write-ahead log that looks like a row of a table.

    A text that is no UTF-8 is bytes.

    RecordingError when the file is there and cannot be read.
    """
    with ExitStack() as files:
        main, log = _open(files, path), _open(files, f"{path}-wal")
        for pages in _layouts(main, log):
            if not log_only or pages.is_log:
                yield from _payloads(pages)


def is_log_damaged(path: str) -> bool:
    """Whether the write-ahead log of that file holds frames that SQLite leaves out: from the first bad sum on.

    Sums as in sqlite.org/fileformat2.html, section 4.2. RecordingError when the log is there and cannot be read.
    """
    with ExitStack() as files:
        log = _open(files, f"{path}-wal")
        if not log or len(log) > _MAX_LOG_BYTES:
            return bool(log)
        order = ">" if log[3] & 1 else "<"
        stride = int.from_bytes(log[8:12], "big") + _WAL_FRAME_BYTES
        sums = _sums(log[:24], order, (0, 0))
        if sums != struct.unpack(">II", log[24:32]):
            return True
        for offset in range(_WAL_HEADER_BYTES, len(log) - stride + 1, stride):
            if log[offset + 8 : offset + 16] != log[16:24]:
                # What stands from here on is of an earlier round, unless more of this one follows.
                later = range(offset + stride, len(log) - stride + 1, stride)
                return any(log[place + 8 : place + 16] == log[16:24] for place in later)
            sums = _sums(log[offset : offset + 8] + log[offset + _WAL_FRAME_BYTES : offset + stride], order, sums)
            if sums != struct.unpack(">II", log[offset + 16 : offset + 24]):
                return True
    return False


def _sums(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for one, other in zip(words, words, strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second


class _Pages:
    """Pages of one file, and by number those of the other: a row can have parts in the file and in the log."""

    def __init__(self, data: Data, page_bytes: int, offsets: Sequence[int], *, is_log: bool) -> None:
        self._data = data
        self.page_bytes = page_bytes
        self._offsets = offsets
        self.is_log = is_log
        self.by_number: Callable[[int], int | None] = lambda number: None
        self.other: _Pages | None = None

    def __iter__(self) -> Iterator[bytes]:
        for offset in self._offsets:
            yield self._data[offset : offset + self.page_bytes]

    def page(self, number: int, other_first: bool) -> bytes:
        """That page, empty when neither file has it."""
        places = (self.other, self) if other_first else (self, self.other)
        for place in places:
            offset = place.by_number(number) if place is not None else None
            if place is not None and offset is not None and offset < len(place._data):
                return place._data[offset : offset + self.page_bytes]
        return b""


def _open(files: ExitStack, path: str) -> Data:
    """The file's bytes, empty when it is not there or has no page. RecordingError when it cannot be read."""
    try:
        with open(path, "rb") as file:
            if not _SMALLEST_PAGE_BYTES <= os.fstat(file.fileno()).st_size <= _MAX_FILE_BYTES:
                return b""
            return files.enter_context(closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    except FileNotFoundError:
        return b""
    except OSError as problem:
        raise RecordingError(f"{path}: cannot be read: {problem.strerror}") from problem


def _layouts(main: Data, log: Data) -> Iterator[_Pages]:
    """Both files. The page size in a header may be damaged: the one that recordings are made with is tried as well."""
    for page_bytes in {_DEFAULT_PAGE_BYTES, _power_of_two(int.from_bytes(main[16:18], "big"))}:
        file = _Pages(main, page_bytes, range(0, len(main), page_bytes), is_log=False)
        file.by_number = lambda number, page_bytes=page_bytes: (number - 1) * page_bytes if number > 0 else None
        stride = page_bytes + _WAL_FRAME_BYTES
        frames = range(_WAL_HEADER_BYTES, max(len(log) - stride + 1, 0), stride)
        wal = _Pages(log, page_bytes, [offset + _WAL_FRAME_BYTES for offset in frames], is_log=True)
        # Frames of an earlier round of the log stand behind those of this one: the salt of the first ones tells them
        # apart. Of three, as one may be damaged.
        salts = Counter(log[offset + 8 : offset + 16] for offset in frames[:3]).most_common(1)
        wal.by_number = {
            int.from_bytes(log[offset : offset + 4], "big"): offset + _WAL_FRAME_BYTES
            for offset in frames
            if log[offset + 8 : offset + 16] == salts[0][0]
        }.get
        file.other, wal.other = wal, file
        yield file
        yield wal


def _power_of_two(value: int) -> int:
    return value if _SMALLEST_PAGE_BYTES <= value <= 32768 and value & (value - 1) == 0 else _DEFAULT_PAGE_BYTES


def _payloads(pages: _Pages) -> Iterator[tuple[int, Payload]]:
    """(rowid, values) of everything in the file that looks like a row of a table."""
    for number, page in enumerate(pages, start=1):
        header = 100 if number == 1 and page[:16] == b"SQLite format 3\0" else 0
        if len(page) < header + 8 or page[header] != _LEAF:
            continue
        cells = int.from_bytes(page[header + 3 : header + 5], "big")
        for cell in range(min(cells, pages.page_bytes // 4)):
            at = header + 8 + 2 * cell
            start = int.from_bytes(page[at : at + 2], "big")
            for other_first in (False, True):
                try:
                    yield _cell(pages, page, start, other_first)
                except (ValueError, IndexError, struct.error):
                    continue


def _cell(pages: _Pages, page: bytes, start: int, other_first: bool) -> tuple[int, Payload]:
    size, at = _varint(page, start)
    rowid, at = _varint(page, at)
    if not 0 < size <= MAX_VALUE_BYTES:
        raise ValueError("size of a cell")
    local = _local_bytes(size, pages.page_bytes)
    payload = page[at : at + local]
    if size > local:
        first = int.from_bytes(page[at + local : at + local + 4], "big")
        payload += _overflow(pages, first, size - local, other_first)
    elif other_first:
        raise ValueError("no other pages belong to it")
    return rowid, _record(payload)


def _local_bytes(size: int, page_bytes: int) -> int:
    """How much of a payload of a table leaf stands on its own page."""
    most = page_bytes - 35
    if size <= most:
        return size
    least = (page_bytes - 12) * 32 // 255 - 23
    part = least + (size - least) % (page_bytes - 4)
    return part if part <= most else least


def _overflow(pages: _Pages, number: int, size: int, other_first: bool) -> bytes:
    parts: list[bytes] = []
    while size > 0:
        page = pages.page(number, other_first)
        if number == 0 or len(page) < 4:
            raise ValueError("a chain of overflow pages that ends early")
        parts.append(page[4 : 4 + min(size, pages.page_bytes - 4)])
        size -= pages.page_bytes - 4
        number = int.from_bytes(page[:4], "big")
    return b"".join(parts)


def _record(payload: bytes) -> Payload:
    header_end, at = _varint(payload, 0)
    kinds: list[int] = []
    while at < header_end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
        if len(kinds) > _MAX_COLUMNS:
            raise ValueError("columns of a row")
    values: list[Any] = []
    at = header_end
    for kind in kinds:
        value, at = _value(payload, at, kind)
        values.append(value)
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind >= 12:
        size = (kind - 12) // 2
        raw = payload[at : at + size]
        if len(raw) != size:
            raise ValueError("a value that ends early")
        try:
            return (raw.decode() if kind % 2 else raw), at + size
        except UnicodeDecodeError:
            return raw, at + size
    if kind == 0:
        return None, at
    if kind in (8, 9):
        return kind - 8, at
    if kind == 7:
        return struct.unpack_from(">d", payload, at)[0], at + 8
    size = _INT_BYTES[kind]
    raw = payload[at : at + size]
    if len(raw) != size:
        raise ValueError("a number that ends early")
    return int.from_bytes(raw, "big", signed=True), at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, where the next byte stands). IndexError past the end."""
    value = 0
    for place in range(at, at + 8):
        byte = data[place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64) if value >= 1 << 63 else value, at + 9
