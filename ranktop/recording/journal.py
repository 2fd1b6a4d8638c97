"""The SQLite side of writing: batches of rows, each batch whole or not at all, and one plain file at the end."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from typing import Any

from ranktop.recording.creation import create
from ranktop.recording.tables import APPLICATION_ID, FORMAT, INDEXES, TABLES

Statement = tuple[str, Sequence[Any]]

_BUSY_SECONDS = 5.0
_WAL_LIMIT_BYTES = 4 << 20


class Journal:
    """An open recording. Every method may raise sqlite3.Error; then nothing of that batch is in the file."""

    def __init__(self, path: str, overwrite: bool = False) -> None:
        """RecordingError when the file cannot be made."""
        self.path = path
        # Open as long as SQLite is: closing any descriptor of a file drops the locks SQLite holds on it.
        self._descriptor = create(path, overwrite)
        try:
            # The writer thread uses it; the thread that made it may be another one.
            self._db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            self._prepare()
        except BaseException:
            os.close(self._descriptor)
            raise

    def write(self, batch: Sequence[Statement]) -> None:
        """All of the batch, on the disk when this returns."""
        if len(batch) == 1:
            # Whole or not at all by itself.
            self._db.execute(*batch[0])
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            for statement, values in batch:
                self._db.execute(statement, values)
            self._db.execute("COMMIT")
        except BaseException:
            # SQLite has rolled back by itself after a full disk: then there is nothing left to roll back.
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query."""
        return self._db.execute(statement, values).fetchall()

    @property
    def used_bytes(self) -> int:
        """Bytes of the file that hold data: without what deletions left free, and without the write-ahead log."""
        pages, free, page_bytes = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * page_bytes

    def close(self) -> None:
        """One file is left, unless a reader is still at it: then SQLite's own files go with the last reader."""
        try:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                # A WAL file cannot be opened from a read-only folder.
                self._db.execute("PRAGMA journal_mode=DELETE")
            self._db.close()
        finally:
            os.close(self._descriptor)

    def _prepare(self) -> None:
        db = self._db
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={FORMAT}")
        if db.execute("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
            # Network file systems and some containers refuse shared memory.
            db.execute("PRAGMA journal_mode=TRUNCATE")
        db.execute("PRAGMA synchronous=FULL")
        # Some builds fill what is deleted with zeros: here it stands in a chunk by then, or nobody keeps it secret.
        db.execute("PRAGMA secure_delete=OFF")
        db.execute(f"PRAGMA journal_size_limit={_WAL_LIMIT_BYTES}")
        self.write([(statement, ()) for statement in (*(table.create for table in TABLES), *INDEXES)])
