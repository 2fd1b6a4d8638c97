"""Files of other formats: read, or refused in one line. The files were written by the programs of their time.

Both hold the samples of `recorded`: a minute of ten samples in a chunk, five in the tail of a recorder that was killed.
"""

from __future__ import annotations

import lzma
import sqlite3
from pathlib import Path

import pytest

from ranktop.recording.cut import cut
from ranktop.recording.errors import RecordingError
from ranktop.recording.reader import Recording
from ranktop.recording.salvage import salvage
from ranktop.recording.writer import Writer
from ranktop.sample import Event, Host, Sample, SourceState
from recording.node import SyntheticNode

FILES = Path(__file__).parents[1] / "data" / "recordings"
START = 1_790_000_000.0


def unpacked(name: str, tmp_path: Path) -> str:
    path = tmp_path / name
    path.write_bytes(lzma.decompress((FILES / f"{name}.xz").read_bytes()))
    return str(path)


def recorded(number: int) -> Sample:
    at = START + 6.6 * number
    return Sample(
        at,
        6.6 * number,
        "node-a",
        (SourceState("hostmem", "ok", "hostmem", None, "", "", at, 0.25, 1.0),),
        host=Host(
            total_bytes=1 << 40,
            available_bytes=(1 << 39) - 4096 * number * number,
            free_bytes=1 << 20,
            oom_kill_count=number // 10,
            source="meminfo",
        ),
        events=(Event(START, "phase", "weights"),) if number == 3 else (),
    )


def with_version(path: str, version: int) -> None:
    """As the header of the file has it; nothing else is touched."""
    data = bytearray(Path(path).read_bytes())
    data[60:64] = version.to_bytes(4, "big")
    Path(path).write_bytes(data)


def test_a_file_of_format_2_is_read_whole_its_tail_included(tmp_path: Path) -> None:
    path = unpacked("format2.rtop", tmp_path)
    wanted = [recorded(number) for number in range(15)]
    for read in (Recording(path), salvage(path).recording):
        with read as recording:
            assert [span.is_chunk for span in recording.index.spans] == [True, *[False] * 5]
            assert [found.sample for found in recording.samples()] == wanted
            assert recording.damage == []
            assert recording.meta["name"] == "an older program"


def test_a_cut_of_a_file_of_format_2_is_read(tmp_path: Path) -> None:
    part = str(tmp_path / "part.rtop")
    with Recording(unpacked("format2.rtop", tmp_path)) as recording:
        assert cut(recording, 8, 12, part) == 12
    with Recording(part) as recording:
        assert [found.sample for found in recording.samples()] == [recorded(number) for number in range(12)]


def test_a_file_of_format_1_is_refused_in_one_line(tmp_path: Path) -> None:
    path = unpacked("format1.rtop", tmp_path)
    for read in (Recording, salvage):
        with pytest.raises(RecordingError, match=r"format 1, this ranktop reads 2 and 3 \(use an older ranktop\)$"):
            read(path)


def test_a_newer_file_whose_rows_mean_something_else_is_refused_in_one_line(tmp_path: Path) -> None:
    # The rows of format 1 stand for those of a format to come: their checksums hold, they do not decode.
    path = unpacked("format1.rtop", tmp_path)
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
