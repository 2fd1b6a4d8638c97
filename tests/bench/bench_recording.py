"""Cost of a recording: `PYTHONPATH=tests python tests/bench/bench_recording.py [--ranks 8] [--minutes 20]`.

Every field of the sample filled (tests/recording/node.py). Size and chunks are measured over the minutes given and
carried on to 24 hours; opening, seeking and the strip are measured on a file of `--day` minutes of the same chunks.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable

from ranktop.recording.encoder import Encoder
from ranktop.recording.findings import FindingHistory
from ranktop.recording.reader import Recording
from ranktop.recording.tables import BLOCK, CHUNK, ROLLUP
from ranktop.recording.writer import Writer
from recording.node import SyntheticNode

DAY_MINUTES = 1440


def cpu_ms(work: Callable[[], object]) -> float:
    """CPU of this process for one call, in ms."""
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1e3


def wall_ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3


def writing(path: str, ranks: int, minutes: int) -> None:
    """CPU a sample, encoding alone and with the disk; bytes a sample."""
    node, encoder = SyntheticNode(ranks), Encoder()
    encoding, all_of_it = [], []
    writer = Writer(path, {})
    for minute in range(minutes):
        samples = list(node.samples(60))
        # The node's own garbage must not be collected on the recorder's account.
        gc.collect()
        gc.freeze()
        all_of_it.append(cpu_ms(lambda samples=samples: [writer.append(sample) for sample in samples]) / 60)
        if minute < 5:
            encoding.append(cpu_ms(lambda samples=samples: _encode(encoder, samples)) / 60)
        gc.unfreeze()
    writer.close()
    page = next(iter(samples[-1].metrics.values()))
    numbers = sum(len(row.numbers) for row in _encode(Encoder(), samples[:1]).values())
    db = sqlite3.connect(path)
    # Not the file: a short one is mostly the free pages of one minute's tail.
    size = db.execute("SELECT sum(bytes) FROM chunk").fetchone()[0] / (60 * minutes)
    db.close()
    print(f"{ranks} ranks: {numbers} numbers a sample, of them {len(page.points)} metrics series")
    print(f"size: {size:.0f} B/sample, {size * 86400 / 1e6:.1f} MB in 24 h (chunks alone)")
    print(f"CPU: {statistics.median(all_of_it):.3f} ms/sample with the disk, best {min(all_of_it):.3f}")
    print(f"     {statistics.median(encoding):.3f} ms/sample to encode, chunk included, best {min(encoding):.3f}")


def _encode(encoder: Encoder, samples: list) -> dict:
    for seq, sample in enumerate(samples, start=1):
        encoder.add(sample, seq)
    rows = encoder._minute[-1]
    if len(samples) == 60:
        encoder.take_chunk()
    return rows


def reading(path: str, minutes: int) -> None:
    """A day made of copies of the chunks: open, seek, and the strip over all of it."""
    db = sqlite3.connect(path, isolation_level=None)
    chunks = db.execute(f"{CHUNK.select} ORDER BY first_seq").fetchall()
    blocks = dict(db.execute("SELECT first_seq, data FROM block").fetchall())
    db.execute("BEGIN")
    shift = 60 * len(chunks)
    for copy in range(1, -(-minutes // len(chunks))):
        for first, count, t0, t1, uses, size, _ in chunks:
            moved = first + copy * shift
            db.execute(CHUNK.insert, CHUNK.row(moved, count, t0 + copy * shift, t1 + copy * shift, uses, size))
            db.execute(BLOCK.insert, BLOCK.row(moved, blocks[first]))
    columns = len(ROLLUP.columns) - 5
    number = 0
    for tick in range(minutes * 6):
        for rank in range(9):
            number += 1
            values = [random.randrange(1 << 36) if column < 10 else None for column in range(columns)]
            name = f"TP{rank - 1}" if rank else ""
            db.execute(ROLLUP.insert, ROLLUP.row(number, tick * 10, chunks[0][2] + tick * 10, "s", name, *values))
    db.execute("COMMIT")
    db.close()
    print(f"file of {minutes} minutes: {os.path.getsize(path) / 1e6:.1f} MB, rollup included")
    print(f"open: {statistics.median(wall_ms(lambda: Recording(path).close()) for _ in range(9)):.1f} ms")
    with Recording(path) as recording:
        spans = recording.index.spans
        rng = random.Random(1)

        def seek() -> None:
            recording.sample(recording.seq_at(rng.uniform(spans[0].t0, spans[-1].t1)))

        times = sorted(wall_ms(seek) for _ in range(300))
        cpu = statistics.median(cpu_ms(seek) for _ in range(100))
        print(f"seek: {statistics.median(times):.1f} ms median ({cpu:.1f} ms CPU), p99 {times[297]:.1f} ms")
        strip = wall_ms(lambda: FindingHistory(recording.events()).severities())
        print(f"strip: {strip / 1e3:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--minutes", type=int, default=20)
    parser.add_argument("--day", type=int, default=DAY_MINUTES)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "bench.rtop")
        writing(name, chosen.ranks, chosen.minutes)
        reading(name, chosen.day)
