"""What a damaged file still holds: every row whose checksum is right, wherever in the file it stands.

Tables of a recording are told apart by the checksum, which covers the table's name; so it does not matter which tree a
page belonged to, or whether the tree still stands.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from ranktop.recording.errors import RecordingError
from ranktop.recording.pages import Payload, rows_of
from ranktop.recording.reader import Recording
from ranktop.recording.tables import INDEXES, TABLES


class Salvaged(NamedTuple):
    """The rows that could be saved, as a recording in memory."""

    recording: Recording
    rows: dict[str, int]


def salvage(path: str) -> Salvaged:
    """Read every good row of a file and of its write-ahead log. RecordingError when there is none."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        for statement in (*(table.create for table in TABLES), *INDEXES):
            db.execute(statement)
        rows = {table.name: 0 for table in TABLES}
        for rowid, payload in rows_of(path):
            _keep(db, rowid, payload, rows)
        if not rows["chunk"] and not rows["tail"]:
            raise RecordingError(f"{path}: nothing to salvage: no row of it has a right checksum")
        return Salvaged(Recording(path, db), rows)
    except BaseException:
        db.close()
        raise


def _keep(db: sqlite3.Connection, rowid: int, payload: Payload, rows: dict[str, int]) -> None:
    for table in TABLES:
        if len(payload) != len(table.columns) + 1:
            continue
        row = table.as_sqlite_gives(rowid, payload)
        if table.holds(row) and table.fits(row):
            # The same row can stand in several old copies of its page.
            rows[table.name] += db.execute(table.insert.replace("INSERT", "INSERT OR IGNORE"), row).rowcount
            return
