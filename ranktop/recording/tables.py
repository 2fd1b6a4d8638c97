"""The tables of a recording, and the checksum that every row of them carries.

`docs/recording.md` says what each column means for people who open the file with sqlite3 or pandas.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

APPLICATION_ID = 0x52544F50
"""`RTOP`: what file(1) and SQLite's header show."""

FORMAT = 7
"""`PRAGMA user_version`; a reader refuses any other one. Those up to 5 are of before the first release."""


_encode = msgspec.msgpack.Encoder().encode

_TYPES: dict[str, type] = {"TEXT": str, "INTEGER": int, "REAL": float, "BLOB": bytes}


class Table(NamedTuple):
    """`columns` without the last one, `crc`. A first column `... INTEGER PRIMARY KEY` is SQLite's rowid."""

    name: str
    columns: tuple[str, ...]
    note: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Column names without `crc`."""
        return tuple(column.split()[0] for column in self.columns)

    @property
    def create(self) -> str:
        """The statement, as it also stands in `sqlite_master`."""
        return f"CREATE TABLE {self.name}({', '.join((*self.columns, 'crc INTEGER'))}{self.note})"

    @property
    def insert(self) -> str:
        """Statement for the columns and the checksum."""
        return f"INSERT INTO {self.name} VALUES ({', '.join('?' * (len(self.columns) + 1))})"

    @property
    def select(self) -> str:
        """All columns and the checksum; add WHERE and ORDER BY."""
        return f"SELECT {', '.join((*self.names, 'crc'))} FROM {self.name}"

    def row(self, *values: Any) -> tuple[Any, ...]:
        """Values with their checksum, for `insert`."""
        return (*values, self.checksum(values))

    def checksum(self, values: Sequence[Any]) -> int:
        """crc32 of the table's name and the values, so that a row cannot pass for one of another table."""
        return zlib.crc32(_encode((self.name, *values)))

    def holds(self, row: Sequence[Any]) -> bool:
        """Whether a row, checksum last, is as it was written."""
        try:
            return row[-1] == self.checksum(row[:-1])
        except (TypeError, ValueError, OverflowError):
            return False

    def as_sqlite_gives(self, rowid: int, stored: Sequence[Any]) -> tuple[Any, ...]:
        """A row from the bytes of a page: with the rowid in its column, and reals that were stored as ints."""
        values = list(stored)
        for place, column in enumerate(self.columns):
            if values[place] is None and column.endswith("INTEGER PRIMARY KEY"):
                values[place] = rowid
            elif column.endswith("REAL") and isinstance(values[place], int):
                values[place] = float(values[place])
        return tuple(values)

    def fits(self, row: Sequence[Any]) -> bool:
        """Whether every value has its column's type; SQLite itself lets any value stand in any column."""
        return all(
            value is None or isinstance(value, _TYPES[column.split()[1]])
            for value, column in zip(row, self.columns, strict=False)
        )


META = Table("meta", ("k TEXT PRIMARY KEY", "v TEXT"))
SERIES = Table("series", ("id INTEGER", "copy INTEGER", "data BLOB"), ", PRIMARY KEY(id, copy)")
CHUNK = Table(
    "chunk", ("first_seq INTEGER PRIMARY KEY", "count INTEGER", "t0 REAL", "t1 REAL", "uses TEXT", "bytes INTEGER")
)
BLOCK = Table("block", ("first_seq INTEGER PRIMARY KEY", "data BLOB"))
TAIL = Table("tail", ("seq INTEGER PRIMARY KEY", "t REAL", "data BLOB"))
EVENT = Table(
    "event",
    (
        "id INTEGER PRIMARY KEY",
        "seq INTEGER",
        "t REAL",
        "origin TEXT",
        "kind TEXT",
        "severity TEXT",
        "server TEXT",
        "rank TEXT",
        "code TEXT",
        "text TEXT",
        "json TEXT",
    ),
)
ROLLUP_LINES = {
    "hbm_total_bytes": "hbm.total",
    "hbm_process_bytes": "hbm.process",
    "host_primary_bytes": "host.primary",
    "host_indexer_bytes": "host.indexer",
    "host_anon_bytes": "host.anon",
    "numa_local_percent": "numa.local",
    "l1_used_tokens": "l1.used",
    "l2_used_tokens": "l2.used",
    "available_bytes": "host.available",
    "cgroup_bytes": "host.cgroup",
    "pressure_percent": "host.pressure",
    "running_requests": "requests.running",
    "queued_requests": "requests.queued",
}
"""Columns of `rollup` and the lines they hold: a rank's row has lines of the rank, the node's row those of the node."""

ROLLUP = Table(
    "rollup",
    (
        "id INTEGER PRIMARY KEY",
        "seq INTEGER",
        "t REAL",
        "server TEXT",
        "rank TEXT",
        *(
            f"{name} {'INTEGER' if name.endswith(('_bytes', '_tokens', '_requests')) else 'REAL'}"
            for name in ROLLUP_LINES
        ),
        "device_hit REAL",
        "host_hit REAL",
        "storage_hit REAL",
        "severity TEXT",
    ),
)

TABLES = (META, SERIES, CHUNK, BLOCK, TAIL, EVENT, ROLLUP)
INDEXES = ("CREATE INDEX event_seq ON event(seq)",)


def uses_text(ids: Sequence[int]) -> str:
    """The ids of `series` that a chunk needs as `chunk.uses` keeps them: a JSON list, that of its dictionary first."""
    return msgspec.json.encode(ids).decode()


def uses_of(text: str) -> list[int]:
    """ValueError when it is no such list."""
    return msgspec.json.decode(text, type=list[int])
