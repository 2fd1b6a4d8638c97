"""Kill, cut, flip, and files from strangers: what is shown is right, what is lost is said, nothing crashes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from ranktop.recording.encoder import MAX_TAIL_DISTANCE
from ranktop.recording.errors import RecordingError
from ranktop.recording.reader import Recording
from ranktop.recording.salvage import salvage
from ranktop.recording.writer import Writer
from ranktop.sample import Sample
from recording.node import SyntheticNode

SOAK = bool(os.environ.get("RANKTOP_SOAK"))
"""`make soak`: the long trials. Otherwise as many as fit in a minute in all."""

SEED = 11
MINUTE_SAMPLES = 10
SAMPLES = 15
"""A full minute and one that is not."""


class Original:
    """A recording, its bytes, and what it holds: closed cleanly, and killed with rows still in the log."""

    def __init__(self, directory: Path, samples: Iterable[Sample]) -> None:
        self.samples = [replace(sample, at_monotonic_seconds=number * 6.6) for number, sample in enumerate(samples)]
        self.closed = directory / "closed.rtop"
        self.killed = directory / "killed.rtop"
        writer = Writer(str(self.closed), {"name": "closed"})
        for sample in self.samples:
            writer.append(sample)
        writer.close()
        writer = Writer(str(self.killed) + ".live", {"name": "killed"})
        for sample in self.samples:
            writer.append(sample)
        for suffix in ("", "-wal"):
            shutil.copy(str(self.killed) + ".live" + suffix, str(self.killed) + suffix)
        writer.close()

    def count_right(self, recording: Recording) -> int:
        """How many samples it shows; each must be one that was recorded, under its own number."""
        count = 0
        for seq, sample in recording.samples():
            assert sample == self.samples[seq - 1]
            count += 1
        return count


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    # Small ones, as they are read back some ten thousand times: what a sample may hold is test_codec's.
    left_out = {"metrics": {}, "infos": {}, "loads": {}, "mappings": {}, "placements": {}, "gpus": None}
    samples = (replace(sample, **left_out) for sample in SyntheticNode(ranks=1, seed=3).samples(SAMPLES))
    return Original(tmp_path_factory.mktemp("original"), samples)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Original:
    return Original(tmp_path_factory.mktemp("large"), SyntheticNode(ranks=8).samples(SAMPLES))


def look(original: Original, path: Path, *, must_tell: bool = True) -> tuple[int, int]:
    """(samples shown, samples salvaged). What is not shown must be told. Nothing but a RecordingError may come out."""
    try:
        with Recording(str(path)) as recording:
            shown = original.count_right(recording)
            assert shown == len(original.samples) or recording.damage or not must_tell
    except RecordingError:
        shown = 0
    try:
        saved = salvage(str(path)).recording
    except RecordingError:
        return shown, 0
    with saved:
        return shown, original.count_right(saved)


def test_salvage_of_a_whole_file_is_the_file(original: Original) -> None:
    for path in (original.closed, original.killed):
        with Recording(str(path)) as recording, salvage(str(path)).recording as saved:
            assert saved.meta == recording.meta
            assert saved.events() == recording.events()
            assert original.count_right(saved) == original.count_right(recording) == len(original.samples)


@pytest.mark.parametrize("name", ["closed.rtop", "killed.rtop", "killed.rtop-wal"])
def test_a_file_cut_anywhere_in_its_end(original: Original, tmp_path: Path, name: str) -> None:
    path = tmp_path / "cut.rtop"
    whole = (original.closed.parent / name).read_bytes()
    places = range(max(0, len(whole) - 8192), len(whole))
    cuts = places if SOAK else random.Random(SEED).sample(places, 6)
    worst = len(original.samples)
    for cut in cuts:
        (tmp_path / "cut.rtop-wal").unlink(missing_ok=True)
        if name.startswith("killed"):
            shutil.copy(original.killed, path)
            shutil.copy(f"{original.killed}-wal", f"{path}-wal")
        (tmp_path / f"cut.rtop{'-wal' if name.endswith('-wal') else ''}").write_bytes(whole[:cut])
        # A log that was cut is one that ended earlier: nothing is left that could tell.
        shown, saved = look(original, path, must_tell=not name.endswith("-wal"))
        worst = min(worst, max(shown, saved))
    print(f"{name} cut at {len(cuts)} places: {worst} of {len(original.samples)} samples came back at least")
    # Both minutes of the closed file may stand in its last pages; a log is cut after what was written first.
    assert worst >= (0 if name == "closed.rtop" else len(original.samples) - 8)


@pytest.mark.parametrize("name", ["closed", "killed"])
def test_one_flipped_bit(original: Original, tmp_path: Path, name: str) -> None:
    source = original.closed if name == "closed" else original.killed
    rng = random.Random(SEED)
    path, log = tmp_path / "flip.rtop", tmp_path / "flip.rtop-wal"
    worst = len(original.samples)
    for _ in range(500 if SOAK else 8):
        data = {"": bytearray(source.read_bytes())}
        if name == "killed":
            data["-wal"] = bytearray(Path(f"{source}-wal").read_bytes())
        hit = rng.choice(sorted(data))
        place = rng.randrange(len(data[hit]))
        data[hit][place] ^= 1 << rng.randrange(8)
        log.unlink(missing_ok=True)
        for suffix, content in data.items():
            (tmp_path / f"flip.rtop{suffix}").write_bytes(content)
        shown, saved = look(original, path)
        worst = min(worst, max(shown, saved))
    print(f"{name}: {worst} of {len(original.samples)} samples came back at least")
    # One bit costs one chunk at most.
    assert worst >= len(original.samples) - MINUTE_SAMPLES


def test_a_flipped_bit_in_every_page(original: Original, tmp_path: Path) -> None:
    rng, path, whole = random.Random(SEED), tmp_path / "flip.rtop", original.closed.read_bytes()
    saved: list[int] = []
    for _ in range(500 if SOAK else 10):
        data = bytearray(whole)
        for page in range(0, len(data), 4096):
            data[page + rng.randrange(4096)] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        saved.append(look(original, path)[1])
    lost = sum(count < len(original.samples) for count in saved)
    print(f"{lost} of {len(saved)} files lost a minute, {sum(not count for count in saved)} all")
    # What SQLite needs to find a row (headers, pointers to cells and pages) carries no sum.
    assert lost <= 1 + len(saved) // 20


@pytest.mark.parametrize("is_taken_over", [False, True], ids=["in the log", "in the file"])
def test_a_flipped_bit_in_every_page_of_a_killed_file_and_its_log(
    large: Original, tmp_path: Path, is_taken_over: bool
) -> None:
    """SQLite reads nothing of such a log. A row of the unfinished minute stands on several pages and has one sum."""
    rng, path, killed = random.Random(SEED), tmp_path / "flip.rtop", tmp_path / "killed.rtop"
    for suffix in ("", "-wal"):
        shutil.copy(f"{large.killed}{suffix}", f"{killed}{suffix}")
    db = sqlite3.connect(killed)
    lengths = [length for (length,) in db.execute("SELECT length(data) FROM tail")]
    assert len(lengths) == SAMPLES - MINUTE_SAMPLES
    assert min(lengths) > 4096
    if is_taken_over:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = {suffix: Path(f"{killed}{suffix}").read_bytes() for suffix in ("", "-wal")}
    db.close()
    assert bool(whole["-wal"]) is not is_taken_over
    saved: list[int] = []
    for _ in range(100 if SOAK else 5):
        for suffix, before, page_bytes in (("", 0, 4096), ("-wal", 32, 4096 + 24)):
            data = bytearray(whole[suffix])
            for page in range(before, len(data), page_bytes):
                data[page + rng.randrange(page_bytes)] ^= 1 << rng.randrange(8)
            Path(f"{path}{suffix}").write_bytes(data)
        saved.append(look(large, path)[1])
    lost = sum(count < MINUTE_SAMPLES for count in saved)
    print(f"{lost} of {len(saved)} files lost a minute that was closed")
    # What SQLite needs to find a row (headers, pointers to cells and pages) carries no sum.
    assert lost <= 1 + len(saved) // 20


def test_other_damage_is_no_flipped_bit(original: Original, tmp_path: Path) -> None:
    """Several bits in every half kilobyte: nothing may come back that was not recorded."""
    rng, path = random.Random(SEED), tmp_path / "noise.rtop"
    for _ in range(200 if SOAK else 5):
        for suffix in ("", "-wal"):
            data = bytearray(Path(f"{original.killed}{suffix}").read_bytes())
            for place in range(4096, len(data), 128):
                data[place + rng.randrange(128) if place + 128 < len(data) else place] ^= 1 << rng.randrange(8)
            Path(f"{path}{suffix}").write_bytes(data)
        look(original, path)


def test_a_repaired_row_is_told(original: Original, tmp_path: Path) -> None:
    path, whole = tmp_path / "a.rtop", original.closed.read_bytes()
    with sqlite3.connect(original.closed) as db:
        (block,) = db.execute("SELECT data FROM block").fetchone()
    db.close()
    data = bytearray(whole)
    data[whole.index(block[:60]) + 30] ^= 4
    path.write_bytes(data)
    with Recording(str(path)) as recording:
        assert original.count_right(recording) < len(original.samples)
    found = salvage(str(path))
    with found.recording as saved:
        assert original.count_right(saved) == len(original.samples)
        assert found.repaired == 1
        assert saved.damage == ["rows repaired by turning back a flipped bit: 1"]
    with salvage(str(original.closed)).recording as saved:
        assert saved.damage == []


def test_damage_in_the_last_row_of_a_log_is_told(original: Original, tmp_path: Path) -> None:
    path, whole = tmp_path / "a.rtop", Path(f"{original.killed}-wal").read_bytes()
    for place in range(len(whole) - 5 * 4120 + 700, len(whole), 4120):
        log = bytearray(whole)
        log[place] ^= 16
        shutil.copy(original.killed, path)
        Path(f"{path}-wal").write_bytes(log)
        look(original, path)
        with Recording(str(path)) as recording:
            assert "write-ahead log" in recording.damage[0]
    shutil.copy(original.killed, path)
    Path(f"{path}-wal").write_bytes(whole)
    with Recording(str(path)) as recording:
        assert recording.damage == []


def test_a_log_that_ends_within_a_transaction_is_not_damaged(original: Original, tmp_path: Path) -> None:
    """As a recorder leaves it that was killed while it wrote: nobody was told that its last sample is on the disk."""
    path, whole = tmp_path / "a.rtop", Path(f"{original.killed}-wal").read_bytes()
    for end in range(len(whole), 32 + 4120 * 20, -4120):
        shutil.copy(original.killed, path)
        Path(f"{path}-wal").write_bytes(whole[:end])
        with Recording(str(path)) as recording:
            assert recording.damage == []


def test_a_damaged_row_of_the_tail_takes_ten_samples_with_it_at_most(tmp_path: Path) -> None:
    path, samples = str(tmp_path / "a.rtop"), list(SyntheticNode(ranks=1).samples(45))
    writer = Writer(path, {})
    for sample in samples:
        writer.append(sample)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("UPDATE tail SET data = zeroblob(length(data)) WHERE seq = 11")
    db.close()
    with Recording(path) as recording:
        shown = [recorded.seq for recorded in recording.samples()]
        assert all(recording.sample(seq) == samples[seq - 1] for seq in shown)
        assert recording.damage
    assert 11 not in shown
    assert len(samples) - MAX_TAIL_DISTANCE <= len(shown) < len(samples)
    writer.close()


def test_kill_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    for trial in range(50 if SOAK else 3):
        path = tmp_path / f"{trial}.rtop"
        code = f"""
            from recording.node import SyntheticNode
            from ranktop.recording.writer import Writer
            samples = list(SyntheticNode(ranks=1, seed={trial}).samples(200))
            writer = Writer({str(path)!r}, {{}})
            for number, sample in enumerate(samples, start=1):
                writer.append(sample)
                print(number, flush=True)
        """
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(rng.uniform(0, 0.6))
        child.send_signal(signal.SIGKILL)
        acknowledged = int((first + child.stdout.read()).split()[-1])
        child.wait()
        samples = list(SyntheticNode(ranks=1, seed=trial).samples(200))
        with Recording(str(path)) as recording:
            found = [recorded.sample for recorded in recording.samples()]
            assert recording.damage == []
        assert len(found) >= acknowledged
        assert found == samples[: len(found)]


def test_a_reader_beside_the_recorder_never_errs_and_is_at_most_two_seconds_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.rtop"
    interval = 1.0 if SOAK else 0.1
    # Ten samples a second, each a second of the node: minutes are closed under the reader in the short form too.
    code = f"""
        import time
        from msgspec.structs import replace
        from recording.node import SyntheticNode
        from ranktop.recording.recorder import Recorder
        recorder, node = Recorder({str(path)!r}, {{}}), SyntheticNode(ranks=2)
        recorder.start()
        print("ready", flush=True)
        while True:
            recorder.put(replace(node.sample(), at_unix_seconds=time.time()))
            time.sleep({interval})
    """
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    ends, seen, lags, chunks = time.monotonic() + (600 if SOAK else 9), 0, [0.0], 0
    try:
        with Recording(str(path)) as recording:
            # A busy machine takes longer to close a minute.
            while time.monotonic() < ends or (not chunks and time.monotonic() < ends + 60):
                recording.refresh()
                for seq, sample in recording.samples(seen + 1):
                    assert seq == seen + 1, "none is skipped"
                    seen, newest = seq, sample.at_unix_seconds
                if seen:
                    lags.append(time.time() - newest)
                chunks = sum(span.is_chunk for span in recording.index.spans)
                assert recording.damage == []
                time.sleep(0.25)
    finally:
        child.kill()
        child.wait()
    print(f"{seen} samples, {chunks} minutes closed, lag at most {max(lags):.2f} s")
    assert chunks >= 1
    assert max(lags) <= 2.0


def test_a_file_cut_to_nothing_keeps_its_log(original: Original, tmp_path: Path) -> None:
    path = tmp_path / "a.rtop"
    for left in (b"", b"S"):
        path.write_bytes(left)
        shutil.copy(f"{original.killed}-wal", f"{path}-wal")
        assert look(original, path) == (0, SAMPLES)
        assert look(original, path) == (0, SAMPLES)


def test_damage_that_sqlite_quotes_in_its_message_is_one_line(original: Original, tmp_path: Path) -> None:
    path = tmp_path / "a.rtop"
    path.write_bytes(original.closed.read_bytes().replace(b"ON event(seq)", b"ON event(\xf3eq)", 1))
    with pytest.raises(RecordingError, match="--salvage"):
        Recording(str(path))
    with salvage(str(path)).recording as saved:
        assert original.count_right(saved) == len(original.samples)
