"""A recording with every field of the sample filled (tests/recording/node.py): size, writing, opening, seeking, strip.

Reading is measured on a file of a whole day, made of copies of the chunks of its first minutes.
"""

from __future__ import annotations

import atexit
import os
import random
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator

from ranktop.recording.encoder import BASE_CHUNKS
from ranktop.recording.findings import FindingHistory
from ranktop.recording.reader import Recording
from ranktop.recording.tables import BLOCK, CHUNK, ROLLUP
from ranktop.recording.writer import Writer
from recording.node import SyntheticNode
from tests.bench.micro import Case, Work, measured
from tests.bench.rows import Row

RANKS = 8
MINUTES = 6
DAY_MINUTES = 1440
MINUTE = 60
LOG_MINUTES = 5


def rows() -> Iterator[Row]:
    """Design section 8: 60 MB a day at 8 ranks, seek 5 ms in a file of 24 hours. Issue 8: the others."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "day.rtop")
        yield Row("a recording of 8 ranks, every field", _written(path) * 86400 / 1e6, "MB/day", 60.0)
        _make_a_day(path)
        yield Row("the same as one file, rollup included", os.path.getsize(path) / 1e6, "MB")
        yield from measured("recording", path)


def cases(path: str) -> Iterator[Case]:
    yield Case("recording: one sample with the disk, CPU", _writing, "ms", 0.3, times=LOG_MINUTES * MINUTE)
    yield Case("recording: open a day", lambda: lambda: Recording(path).close(), "ms", 50.0, timer=time.perf_counter)
    yield Case("recording: seek in a day", lambda: _seeking(path), "ms", 5.0, times=100, timer=time.perf_counter)
    yield Case("recording: seek in a day, CPU", lambda: _seeking(path), times=100)
    yield Case("recording: the strip of a day", lambda: _strip(path), "s", 0.5, times=1, timer=time.perf_counter)


def _written(path: str) -> float:
    """Bytes a sample, of chunks and of an hour's dictionary: a short file is mostly free pages of one minute's tail."""
    node, writer = SyntheticNode(RANKS), Writer(path, {})
    for sample in node.samples(MINUTES * MINUTE):
        writer.append(sample)
    writer.close()
    with sqlite3.connect(path) as db:
        (size,) = db.execute("SELECT sum(bytes) FROM chunk").fetchone()
        (shared,) = db.execute("SELECT sum(length(data)) FROM series").fetchone()
    db.close()
    return size / (MINUTES * MINUTE) + shared / (BASE_CHUNKS * MINUTE)


def _writing() -> Work:
    """A run is as many minutes as SQLite's log takes until it is written over, with their chunks.

    The samples are made before, enough of them for every run. The log of the first run grows, which costs 0.1 ms more a
    sample: a day has that once, so it is left out.
    """
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    writer = Writer(os.path.join(folder, "written.rtop"), {})
    node = SyntheticNode(RANKS)
    for sample in node.samples(LOG_MINUTES * MINUTE):
        writer.append(sample)
    samples = iter(list(node.samples(4 * LOG_MINUTES * MINUTE)))
    return lambda: writer.append(next(samples))


def _make_a_day(path: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    chunks = db.execute(f"{CHUNK.select} ORDER BY first_seq").fetchall()
    blocks = dict(db.execute("SELECT first_seq, data FROM block").fetchall())
    db.execute("BEGIN")
    shift = MINUTE * len(chunks)
    for copy in range(1, -(-DAY_MINUTES // len(chunks))):
        for first, count, t0, t1, uses, size, _ in chunks:
            moved = first + copy * shift
            db.execute(CHUNK.insert, CHUNK.row(moved, count, t0 + copy * shift, t1 + copy * shift, uses, size))
            db.execute(BLOCK.insert, BLOCK.row(moved, blocks[first]))
    columns = len(ROLLUP.columns) - 5
    number = 0
    for tick in range(DAY_MINUTES * 6):
        for rank in range(RANKS + 1):
            number += 1
            values = [random.randrange(1 << 36) if column < 10 else None for column in range(columns)]
            name = f"TP{rank - 1}" if rank else ""
            db.execute(ROLLUP.insert, ROLLUP.row(number, tick * 10, chunks[0][2] + tick * 10, "s", name, *values))
    db.execute("COMMIT")
    db.close()


def _seeking(path: str) -> Work:
    recording, chance = Recording(path), random.Random(1)
    spans = recording.index.spans
    return lambda: recording.sample(recording.seq_at(chance.uniform(spans[0].t0, spans[-1].t1)))


def _strip(path: str) -> Work:
    recording = Recording(path)
    return lambda: FindingHistory(recording.events()).severities()
