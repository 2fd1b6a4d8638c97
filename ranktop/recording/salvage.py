"""What a damaged file still holds: every row whose checksum is right, or would be but for a flipped bit.

Tables of a recording are told apart by the checksum, which covers the table's name; so it does not matter which tree a
page belonged to, or whether the tree still stands.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from ranktop.recording.connection import other_format
from ranktop.recording.errors import RecordingError
from ranktop.recording.pages import rows_of
from ranktop.recording.reader import Recording
from ranktop.recording.repair import Row, repaired
from ranktop.recording.tables import FORMAT, INDEXES, SERIES, TABLES, TAIL, Table


class Salvaged(NamedTuple):
    """The rows that could be saved, as a recording in memory."""

    recording: Recording
    rows: dict[str, int]
    """Of each table, repaired ones included."""
    repaired: int
    """Rows that are right but for a flipped bit, which was turned back."""


def salvage(path: str) -> Salvaged:
    """Read every good row of a file and of its write-ahead log. RecordingError when there is none."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        for statement in (*(table.create for table in TABLES), *INDEXES):
            db.execute(statement)
        rows = {table.name: 0 for table in TABLES}
        for table, row in _rows(path):
            if table.holds(row) and table.fits(row):
                rows[table.name] += _keep(db, table, row)
        # Only then, as a row that is whole may stand elsewhere.
        repairs = 0
        for table, row in _rows(path):
            if not table.holds(row) and _is_needed(db, table, row):
                mended = repaired(table, row)
                kept = _keep(db, table, mended) if mended is not None else 0
                rows[table.name] += kept
                repairs += kept
        if not rows["chunk"] and not rows["tail"]:
            raise RecordingError(f"{path}: nothing to salvage: no row of it has a right checksum")
        told = [f"rows repaired by turning back a flipped bit: {repairs}"] if repairs else []
        recording = Recording(path, db, told)
        version = _format(path)
        # The number may be damaged: only a file of which not one sample can be read is of another format.
        if version is not None and version != FORMAT and next(recording.samples(), None) is None:
            raise other_format(path, version)
        return Salvaged(recording, rows, repairs)
    except BaseException:
        db.close()
        raise


def _format(path: str) -> int | None:
    """`PRAGMA user_version` as the file's header has it (sqlite.org/fileformat2.html); None when there is no header."""
    try:
        with open(path, "rb") as file:
            header = file.read(100)
    except OSError:
        return None
    return int.from_bytes(header[60:64], "big") if len(header) == 100 else None


def _rows(path: str) -> Iterator[tuple[Table, Row]]:
    """Everything that may be a row of one of the tables: a table is known by the number of its columns."""
    for rowid, payload in rows_of(path):
        for table in TABLES:
            if len(payload) == len(table.columns) + 1:
                yield table, table.as_sqlite_gives(rowid, payload)


def _keep(db: sqlite3.Connection, table: Table, row: Row) -> int:
    """1 when it was not there yet: the same row can stand in several old copies of its page."""
    return db.execute(table.insert.replace("INSERT", "INSERT OR IGNORE"), row).rowcount


def _is_needed(db: sqlite3.Connection, table: Table, row: Row) -> bool:
    """Whether nothing that is whole stands in its place. Old pages hold halves of rows that a chunk holds by now."""
    if table == TAIL:
        chunk = "SELECT max(first_seq) AS first FROM chunk WHERE first_seq <= ?"
        where = f"chunk JOIN block USING (first_seq) WHERE first_seq = ({chunk}) AND ? < first_seq + count"
        if db.execute(f"SELECT 1 FROM {where}", (row[0], row[0])).fetchone():
            return False
    keys = 2 if table == SERIES else 1
    where = " AND ".join(f"{name} = ?" for name in table.names[:keys])
    return db.execute(f"SELECT 1 FROM {table.name} WHERE {where}", row[:keys]).fetchone() is None
