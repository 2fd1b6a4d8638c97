"""Marks from another shell: lines in a file beside the recording, which its recorder takes over.

`FILE.rtop.marks.jsonl`: one JSON object a line, `{"at": unix seconds, "text": "..."}`.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager

import msgspec
from msgspec import Struct

from ranktop.recording.creation import MODE, lock
from ranktop.recording.errors import RecordingError
from ranktop.recording.notes import mark
from ranktop.recording.reader import Recording
from ranktop.recording.tables import EVENT

MAX_TEXT = 500
MAX_FILE_BYTES = 1 << 20


class Mark(Struct, frozen=True):
    """One line of the file."""

    at: float
    text: str


def marks_path(recording_path: str) -> str:
    """Where marks for that recording wait for its recorder."""
    return recording_path + ".marks.jsonl"


def add_mark(path: str, text: str, at_unix_seconds: float | None = None) -> bool:
    """Mark a recording. True: its recorder will take the mark over. False: nobody records, it is written already.

    RecordingError when there is no such recording, or it cannot be written.
    """
    found = Mark(time.time() if at_unix_seconds is None else at_unix_seconds, " ".join(text.split())[:MAX_TEXT])
    if not found.text:
        raise RecordingError("mark: the text is empty (say what happened)")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as problem:
        raise RecordingError(f"{path}: cannot be marked: {problem.strerror}") from problem
    try:
        if not lock(descriptor):
            with _locked(marks_path(path), create=True) as waiting:
                os.write(waiting, msgspec.json.encode(found) + b"\n")
            return True
        _write(path, found)
        return False
    finally:
        os.close(descriptor)


def take_marks(path: str) -> list[Mark]:
    """The marks that wait for that recording, and no longer wait after this. Lines that are no marks are dropped."""
    name = marks_path(path)
    if not os.path.exists(name):
        return []
    try:
        with _locked(name, create=False) as waiting:
            lines = os.pread(waiting, MAX_FILE_BYTES, 0).splitlines()
            os.ftruncate(waiting, 0)
    except OSError:
        return []
    return [found for line in lines if (found := _parsed(line)) is not None]


def drop_marks_file(path: str) -> None:
    """Remove the file when no mark waits in it."""
    name = marks_path(path)
    try:
        if os.path.getsize(name) == 0:
            os.unlink(name)
    except OSError:
        return


def _parsed(line: bytes) -> Mark | None:
    try:
        found = msgspec.json.decode(line, type=Mark)
    except msgspec.DecodeError:
        return None
    return Mark(found.at, " ".join(found.text.split())[:MAX_TEXT])


@contextmanager
def _locked(name: str, *, create: bool) -> Generator[int, None, None]:
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
    descriptor = os.open(name, flags, MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _write(path: str, found: Mark) -> None:
    with Recording(path) as recording:
        seq = recording.seq_at(found.at)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        try:
            number = (db.execute("SELECT max(id) FROM event").fetchone()[0] or 0) + 1
            db.execute(EVENT.insert, EVENT.row(number, *mark(seq, found.at, found.text).columns()))
        except sqlite3.Error as problem:
            raise RecordingError(f"{path}: the mark was not written: {problem}") from problem
