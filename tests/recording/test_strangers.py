"""Files of strangers: refused in one line, or read as far as they hold, in bounded memory."""

from __future__ import annotations

import os
import resource
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from ranktop.recording.errors import Damaged, RecordingError
from ranktop.recording.packed import pack
from ranktop.recording.reader import Recording
from ranktop.recording.salvage import salvage
from ranktop.recording.tables import APPLICATION_ID, BLOCK, CHUNK, FORMAT, META, SERIES, TABLES
from ranktop.recording.writer import Writer
from recording.node import SyntheticNode


def _not_sqlite(path: Path) -> None:
    path.write_bytes(b"\x1b]0;title\x07" * 100)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _other_database(path: Path) -> None:
    sqlite3.connect(path).execute("CREATE TABLE t(a)").connection.close()


def _hostile(path: Path, *statements: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA application_id={APPLICATION_ID}")
    db.execute(f"PRAGMA user_version={FORMAT}")
    for statement in statements:
        db.execute(statement)
    db.close()


def _view_for_a_table(path: Path) -> None:
    tables = [table.create for table in TABLES if table.name != "meta"]
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x AS k, x AS v, x AS crc FROM c"
    _hostile(path, *tables, f"CREATE VIEW meta AS {endless}")


def _trigger(path: Path) -> None:
    trigger = "CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM tail; END"
    _hostile(path, *(table.create for table in TABLES), trigger)


def _newer(path: Path) -> None:
    _hostile(path, *(table.create for table in TABLES), "PRAGMA user_version=99")


@pytest.mark.parametrize("make", [_not_sqlite, _empty, _other_database, _view_for_a_table, _trigger, _newer])
def test_a_strangers_file_is_refused_in_one_line(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "a.rtop"
    make(path)
    for read in (Recording, salvage):
        with pytest.raises(RecordingError) as caught:
            read(str(path))
        assert "\n" not in str(caught.value)
        assert "\x1b" not in str(caught.value)


def test_a_pipe_or_a_folder_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "", "missing"):
        with pytest.raises(RecordingError):
            Recording(str(tmp_path / name))


def test_rows_of_other_types_with_right_checksums_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.rtop"
    Writer(str(path), {"k": "v"}).close()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(META.insert, META.row("blob", b"not text"))
    db.execute(CHUNK.insert, CHUNK.row(1, "many", 0.0, 1.0, "[]", 5))
    db.execute(CHUNK.insert, CHUNK.row(7, 1 << 40, 0.0, 1.0, "[]", 5))
    db.execute(CHUNK.insert, CHUNK.row(9, 2, float("nan"), 1.0, "[]", 5))
    db.execute(CHUNK.insert, CHUNK.row(20, 2, 0.0, 1.0, "[]", 5))
    db.execute(BLOCK.insert, BLOCK.row(20, b"x" * 100))
    db.close()
    with Recording(str(path)) as recording:
        assert recording.meta == {"k": "v"}
        assert [span.first_seq for span in recording.index.spans] == [20]
        assert list(recording.samples()) == []
        assert len(recording.damage) >= 3


def test_a_bomb_in_a_block_fills_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.rtop"
    Writer(str(path), {}).close()
    bomb = pack(bytes(400 << 20))
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(SERIES.insert, SERIES.row(1, 0, pack(b"dictionary")))
    db.execute(CHUNK.insert, CHUNK.row(1, 60, 0.0, 1.0, "[1]", len(bomb)))
    db.execute(BLOCK.insert, BLOCK.row(1, bomb))
    db.close()
    del bomb
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Recording(str(path)) as recording:
        assert list(recording.samples()) == []
        assert "larger than" in recording.damage[0]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


def test_a_chunk_of_another_length_than_its_entry_says_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.rtop"
    writer = Writer(str(path), {})
    for sample in SyntheticNode(ranks=1).samples(5):
        writer.append(sample)
    writer.close()
    db = sqlite3.connect(path, isolation_level=None)
    (row,) = db.execute(f"{CHUNK.select}").fetchall()
    db.execute("DELETE FROM chunk")
    db.execute(CHUNK.insert, CHUNK.row(row[0], 4, *row[2:-1]))
    db.close()
    with Recording(str(path)) as recording:
        for _ in range(2):
            with pytest.raises(Damaged, match="another number of samples"):
                recording.sample(1)
