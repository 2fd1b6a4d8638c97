"""Opening a recording to read: as a stranger's file, never written to, and only with the tables of the format."""

from __future__ import annotations

import os
import sqlite3
import stat
from urllib.parse import quote

from ranktop.recording.errors import RecordingError, way_out
from ranktop.recording.tables import APPLICATION_ID, FORMAT, INDEXES, TABLES

MAX_VALUE_BYTES = 64 << 20
"""No row of a recording is larger, and SQLite refuses to make a larger value."""

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged file raises; the second when SQLite quotes damaged text in its message."""

_BUSY_SECONDS = 2.0


def connect(path: str) -> sqlite3.Connection:
    """A read-only connection. RecordingError when this is no recording, or is damaged where SQLite needs it whole."""
    _check_file(path)
    try:
        return _connect(path, "mode=ro")
    except sqlite3.OperationalError as problem:
        # A file in WAL mode in a folder where nothing may be written: its last seconds, still in the log, are not seen.
        if "readonly" not in str(problem) and "unable to open" not in str(problem):
            raise unreadable(path, problem) from problem
    except FAILURES as problem:
        raise unreadable(path, problem) from problem
    try:
        return _connect(path, "mode=ro&immutable=1")
    except FAILURES as problem:
        raise unreadable(path, problem) from problem


def unreadable(path: str, problem: Exception) -> RecordingError:
    """What SQLite said, with the way out."""
    said = "".join(sign if sign.isprintable() else "?" for sign in str(problem))
    if "not a database" in said:
        return RecordingError(
            f"{path}: is no recording: its first bytes are not SQLite's (if it was one, {way_out(path)})"
        )
    return RecordingError(f"{path}: damaged, SQLite says {said} ({way_out(path)})")


def other_format(path: str, version: int) -> RecordingError:
    """That this program reads no file with that `PRAGMA user_version`."""
    which = "a newer" if version > FORMAT else "an older"
    return RecordingError(f"{path}: format {version}, this ranktop reads {FORMAT} (use {which} ranktop)")


def _check_file(path: str) -> None:
    try:
        status = os.stat(path)
    except OSError as problem:
        raise RecordingError(f"{path}: cannot be read: {problem.strerror}") from problem
    if not stat.S_ISREG(status.st_mode):
        raise RecordingError(f"{path}: is no regular file")
    if status.st_size <= 1:
        # SQLite takes both sizes for a new database and removes the log beside it, whatever that holds.
        log = f"{path}-wal"
        raise RecordingError(f"{path}: is empty" + (f" ({way_out(path)} in {log})" if os.path.exists(log) else ""))


def _connect(path: str, how: str) -> sqlite3.Connection:
    db = sqlite3.connect(
        f"file:{quote(os.path.abspath(path))}?{how}",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        for pragma in ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
            db.execute(f"PRAGMA {pragma}")
        _check_tables(path, db)
    except BaseException:
        db.close()
        raise
    return db


def _check_tables(path: str, db: sqlite3.Connection) -> None:
    application, version = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    if application != APPLICATION_ID:
        raise RecordingError(f"{path}: is an SQLite file, but no recording of ranktop")
    if version != FORMAT:
        raise other_format(path, version)
    found = db.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL LIMIT 100").fetchall()
    expected = {table.create for table in TABLES} | set(INDEXES)
    strange = [name for kind, name, sql in found if kind not in ("table", "index") or sql not in expected]
    missing = [table.name for table in TABLES if table.name not in {name for _, name, _ in found}]
    if strange or missing:
        raise RecordingError(
            f"{path}: its tables are not those of a recording (strange: {strange!r:.80}, missing: {missing!r:.80})"
        )
