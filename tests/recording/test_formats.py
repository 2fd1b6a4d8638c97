"""Files of other formats are refused in one line.

`format2.rtop` was written by the program of its time: ten samples in a chunk, five in the tail of a killed recorder.
"""

from __future__ import annotations

import lzma
import sqlite3
from pathlib import Path

import pytest

from ranktop.recording.errors import RecordingError
from ranktop.recording.reader import Recording
from ranktop.recording.salvage import salvage
from ranktop.recording.writer import Writer
from recording.node import SyntheticNode

FILES = Path(__file__).parents[1] / "data" / "recordings"


def unpacked(name: str, tmp_path: Path) -> str:
    path = tmp_path / name
    path.write_bytes(lzma.decompress((FILES / f"{name}.xz").read_bytes()))
    return str(path)


def with_version(path: str, version: int) -> None:
    """As the header of the file has it; nothing else is touched."""
    data = bytearray(Path(path).read_bytes())
    data[60:64] = version.to_bytes(4, "big")
    Path(path).write_bytes(data)


def test_an_older_file_is_refused_in_one_line(tmp_path: Path) -> None:
    path = unpacked("format2.rtop", tmp_path)
    for read in (Recording, salvage):
        with pytest.raises(RecordingError, match=r"format 2, this ranktop reads 7 \(use an older ranktop\)$"):
            read(path)


def test_a_newer_file_whose_rows_mean_something_else_is_refused_in_one_line(tmp_path: Path) -> None:
    # The rows of format 2 stand for those of a format to come: their checksums hold, they do not decode.
    path = unpacked("format2.rtop", tmp_path)
    with_version(path, 99)
    for read in (Recording, salvage):
        with pytest.raises(RecordingError, match=r"format 99, .* \(use a newer ranktop\)$"):
            read(path)


def test_a_damaged_number_of_the_format_costs_nothing_with_salvage(tmp_path: Path) -> None:
    path, samples = str(tmp_path / "a.rtop"), list(SyntheticNode(ranks=1).samples(5))
    writer = Writer(path, {})
    for sample in samples:
        writer.append(sample)
    writer.close()
    with sqlite3.connect(path) as db:
        (written,) = db.execute("PRAGMA user_version").fetchone()
    db.close()
    for bit in range(32):
        with_version(path, written ^ 1 << bit)
        with salvage(path).recording as saved:
            assert [found.sample for found in saved.samples()] == samples
