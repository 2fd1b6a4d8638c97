"""A recording on the disk: whole, private, bounded, one file."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from ranktop.reconcile import Reconciler
from ranktop.recording.cut import cut
from ranktop.recording.errors import RecordingError
from ranktop.recording.marks import add_mark, marks_path
from ranktop.recording.reader import Recording
from ranktop.recording.recorder import QUEUE_SAMPLES, Recorder
from ranktop.recording.tables import ROLLUP
from ranktop.recording.writer import MAX_UNWRITTEN_SAMPLES, Writer
from ranktop.sample import Event, Sample
from recording.node import START, SyntheticNode
from support.samples import healthy, with_pool


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "a.rtop")


def record(path: str, samples: list[Sample], **limits: float) -> None:
    writer = Writer(path, {"note": "a test"}, **limits)  # type: ignore[arg-type]
    for sample in samples:
        writer.append(sample)
    writer.close()


def read(path: str) -> list[Sample]:
    with Recording(path) as recording:
        found = [recorded.sample for recorded in recording.samples()]
        assert recording.damage == []
    return found


def test_all_samples_come_back_and_one_file_is_left(path: str, tmp_path: Path) -> None:
    samples = list(SyntheticNode(ranks=2).samples(150))
    record(path, samples)
    assert os.listdir(tmp_path) == ["a.rtop"]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert read(path) == samples


def test_every_sample_can_be_read_while_the_file_is_written(path: str) -> None:
    samples = list(SyntheticNode(ranks=2).samples(70))
    writer = Writer(path, {})
    with_reader: Recording | None = None
    for number, sample in enumerate(samples, start=1):
        writer.append(sample)
        if with_reader is None:
            with_reader = Recording(path)
        with_reader.refresh()
        assert with_reader.index.count == number
        assert with_reader.sample(number) == sample
    assert with_reader is not None
    with_reader.close()
    writer.close()


def test_a_cut_of_the_minute_that_is_not_full_takes_what_its_rows_name(path: str, tmp_path: Path) -> None:
    samples = list(SyntheticNode(ranks=1).samples(95))
    writer = Writer(path, {})
    for sample in samples:
        writer.append(sample)
    with Recording(path) as recording:
        assert cut(recording, 92, 95, str(tmp_path / "b.rtop")) == 35
    writer.close()
    assert read(str(tmp_path / "b.rtop")) == samples[60:]


def test_a_reader_that_holds_an_old_index_still_finds_a_sample(path: str) -> None:
    samples = list(SyntheticNode(ranks=1).samples(70))
    writer = Writer(path, {})
    for sample in samples[:59]:
        writer.append(sample)
    with Recording(path) as recording:
        for sample in samples[59:]:
            writer.append(sample)
        assert recording.sample(3) == samples[2]
    writer.close()


def test_nothing_is_overwritten_unasked(path: str) -> None:
    Path(path).write_text("precious")
    with pytest.raises(RecordingError, match="is there already"):
        Writer(path, {})
    assert Path(path).read_text() == "precious"
    Writer(path, {}, overwrite=True).close()
    assert read(path) == []


def test_a_link_is_not_followed(path: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    os.symlink(target, path)
    for overwrite in (False, True):
        with pytest.raises(RecordingError):
            Writer(path, {}, overwrite=overwrite)
    assert target.read_text() == "precious"


def test_two_recorders_do_not_share_a_file(path: str) -> None:
    writer = Writer(path, {})
    with pytest.raises(RecordingError, match="another recorder"):
        Writer(path, {}, overwrite=True)
    writer.close()


def test_events_stay_with_their_sample(path: str) -> None:
    events = (Event(START, "phase", "weights \x1b[31m", "s", "TP0", {"size_bytes": 3}), Event(START, "batch", "x"))
    samples = list(SyntheticNode(ranks=1).samples(3))
    samples[1] = replace(samples[1], events=events)
    record(path, samples)
    assert read(path) == samples


def test_findings_open_and_close(path: str) -> None:
    writer, reconciler = Writer(path, {}), Reconciler()
    for second in range(12):
        sample = healthy(float(second))
        if 3 <= second < 6:
            sample = with_pool(sample, 3, 130 * 10**9, 24 * 10**9)
        writer.append(sample, reconciler.update(sample))
    writer.close()
    with Recording(path) as recording:
        told = [
            (note.kind, note.code, note.rank, note.seq) for note in recording.events() if note.code == "HOST-POOL-OVER"
        ]
        rolled = [dict(zip(ROLLUP.names, row, strict=False)) for row in recording.stored(ROLLUP, "ORDER BY id")]
    assert [entry[:3] for entry in told] == [
        ("finding_opened", "HOST-POOL-OVER", "TP3"),
        ("finding_closed", "HOST-POOL-OVER", "TP3"),
    ]
    assert told[0][3] == 4
    assert [row["rank"] for row in rolled[:9]] == ["", *(f"TP{tp}" for tp in range(8))]
    assert rolled[1]["host_primary_bytes"] == 120_000_012_288
    assert rolled[0]["available_bytes"] == 346 * 10**9


def test_a_clock_that_steps_keeps_the_order_and_is_marked(path: str) -> None:
    samples = list(SyntheticNode(ranks=1).samples(130))
    back = [replace(sample, at_unix_seconds=sample.at_unix_seconds - 3600) for sample in samples[70:]]
    record(path, samples[:70] + back)
    assert read(path) == samples[:70] + back
    with Recording(path) as recording:
        steps = [note for note in recording.events() if note.kind == "clock"]
    assert [(step.seq, round(float(step.text.split()[2]))) for step in steps] == [(71, -3600)]


def test_old_chunks_go_when_the_file_is_too_large(path: str) -> None:
    node = SyntheticNode(ranks=2)
    # A minute of tail rows comes on top, and stays in the file as free pages.
    writer = Writer(path, {}, max_bytes=120_000)
    last: Sample | None = None
    for sample in node.samples(60 * 14):
        writer.append(sample)
        last = sample
    writer.close()
    assert os.path.getsize(path) < 900_000
    with Recording(path) as recording:
        kept = list(recording.samples())
        assert recording.damage == []
        assert 120 <= len(kept) < 60 * 14
        assert kept[-1].sample == last
        assert all(note.seq >= kept[0].seq for note in recording.events())


def test_a_finding_that_is_open_outlives_the_minute_in_which_it_opened(path: str) -> None:
    writer, reconciler = Writer(path, {}, max_age_seconds=60), Reconciler()
    for second in range(240):
        sample = with_pool(healthy(float(second)), 3, 130 * 10**9, 24 * 10**9)
        writer.append(sample, reconciler.update(sample) if second % 20 == 0 else None)
    writer.close()
    with Recording(path) as recording:
        first = recording.index.spans[0].first_seq
        opened = [note for note in recording.events() if note.code == "HOST-POOL-OVER"]
    assert first > 60
    assert [(note.kind, note.seq) for note in opened] == [("finding_opened", first)]


def test_old_chunks_go_by_age_and_a_shape_that_comes_back_is_stored_again(path: str) -> None:
    small, large = SyntheticNode(ranks=1), SyntheticNode(ranks=2)
    samples = [(small if minute % 4 else large).sample() for minute in range(8) for _ in range(60)]
    samples = [
        replace(sample, at_unix_seconds=START + second, at_monotonic_seconds=float(second))
        for second, sample in enumerate(samples)
    ]
    record(path, samples, max_age_seconds=120)
    found = read(path)
    assert found == samples[-len(found) :]
    assert 120 <= len(found) <= 240


def test_a_full_disk_loses_nothing_that_waits_and_says_what_it_lost(path: str) -> None:
    samples = list(SyntheticNode(ranks=1).samples(60 + MAX_UNWRITTEN_SAMPLES + 40))
    writer = Writer(path, {})
    for sample in samples[:10]:
        writer.append(sample)
    pages = writer._journal.query("PRAGMA page_count")[0][0]
    writer._journal.query(f"PRAGMA max_page_count={pages}")
    refused = 0
    for sample in samples[10 : 20 + MAX_UNWRITTEN_SAMPLES]:
        try:
            writer.append(sample)
        except sqlite3.Error:
            refused += 1
    assert refused > MAX_UNWRITTEN_SAMPLES
    writer._journal.query("PRAGMA max_page_count=1000000")
    for sample in samples[20 + MAX_UNWRITTEN_SAMPLES :]:
        writer.append(sample)
    writer.close()
    with Recording(path) as recording:
        found = [recorded.sample for recorded in recording.samples()]
        gaps = [note.text for note in recording.events() if note.kind == "gap"]
    assert found[:10] == samples[:10]
    assert found[-40:] == samples[-40:]
    lost = len(samples) - len(found)
    assert gaps == [f"{lost} samples were lost: the disk was too slow, or it or the format refused them"]


def until_written(recorder: Recorder, samples: int) -> None:
    ends = time.monotonic() + 60
    while recorder.status.samples < samples:
        assert time.monotonic() < ends, recorder.status
        time.sleep(0.01)


def test_what_a_disk_was_too_slow_for_is_told(path: str) -> None:
    recorder = Recorder(path, {})
    node = SyntheticNode(ranks=1)
    # Nobody writes yet: the queue fills as under a disk that hangs.
    samples = [node.sample() for _ in range(QUEUE_SAMPLES + 7)]
    for sample in samples:
        recorder.put(sample)
    recorder.start()
    until_written(recorder, QUEUE_SAMPLES)
    recorder.put(node.sample())
    assert recorder.stop()
    with Recording(path) as recording:
        gaps = [(note.at_unix_seconds, note.text) for note in recording.events() if note.kind == "gap"]
        assert len(list(recording.samples())) == QUEUE_SAMPLES + 1
    words = "7 samples were lost: the disk was too slow, or it or the format refused them"
    assert gaps == [(samples[QUEUE_SAMPLES].at_unix_seconds, words)]


def test_a_disk_that_hangs_does_not_keep_the_screen_from_ending(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(path, {})
    answers = threading.Event()
    append = recorder._writer.append
    monkeypatch.setattr(recorder._writer, "append", lambda *handed: (answers.wait(), append(*handed)))
    recorder.start()
    node = SyntheticNode(ranks=1)
    for _ in range(QUEUE_SAMPLES + 2):
        recorder.put(node.sample())
    stopping = threading.Thread(target=recorder.stop, args=(0.05,), daemon=True)
    stopping.start()
    stopping.join(20)
    assert not stopping.is_alive(), "waits for room in the queue"
    answers.set()
    assert recorder.stop(), "the disk answers again"


def test_what_was_lost_last_is_told_too(path: str) -> None:
    recorder = Recorder(path, {})
    node = SyntheticNode(ranks=1)
    for _ in range(QUEUE_SAMPLES + 1):
        recorder.put(node.sample())
    recorder.start()
    until_written(recorder, QUEUE_SAMPLES)
    assert recorder.stop()
    with Recording(path) as recording:
        assert [note.text[:17] for note in recording.events() if note.kind == "gap"] == ["1 sample was lost"]


def test_a_real_limit_on_the_file_is_survived(path: str) -> None:
    # A child, because a limit on the size of files cannot be lifted again.
    code = f"""
        import resource, time
        from recording.node import SyntheticNode
        from ranktop.recording.recorder import Recorder
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        recorder = Recorder({path!r}, {{}})
        recorder.start()
        for sample in SyntheticNode(ranks=2).samples(100):
            recorder.put(sample)
            time.sleep(0.005)
        time.sleep(0.3)
        status = recorder.status
        assert status.problem is not None and "disk" in status.problem, status
        assert recorder.stop()
        print(status.samples)
    """
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    assert len(read(path)) >= int(ran.stdout) > 0


def test_a_sample_that_no_format_holds_costs_only_itself(path: str) -> None:
    samples = list(SyntheticNode(ranks=1).samples(5))
    assert samples[2].host is not None
    bad = replace(samples[2], host=replace(samples[2].host, free_bytes=1 << 70))
    writer = Writer(path, {})
    for sample in samples[:2]:
        writer.append(sample)
    with pytest.raises(RecordingError, match="cannot be recorded"):
        writer.append(bad)
    for sample in samples[3:]:
        writer.append(sample)
    writer.close()
    with Recording(path) as recording:
        assert [recorded.sample for recorded in recording.samples()] == samples[:2] + samples[3:]


def test_marks_from_another_shell(path: str, tmp_path: Path) -> None:
    recorder = Recorder(path, {})
    recorder.start()
    node = SyntheticNode(ranks=1)
    assert add_mark(path, "owner rank\nstopped", START) is True
    assert os.path.exists(marks_path(path))
    for sample in node.samples(3):
        recorder.put(sample)
    recorder.mark("by the key m", START + 2)
    recorder.put(node.sample())
    assert recorder.stop()
    assert [mark.text for mark in recorder.new_marks()] == ["owner rank stopped", "by the key m"]
    assert recorder.new_marks() == []
    assert add_mark(path, "after it", START + 1) is False
    assert os.listdir(tmp_path) == ["a.rtop"]
    with Recording(path) as recording:
        marks = {note.text: note.seq for note in recording.events() if note.kind == "mark"}
    # With the next sample that is written: which one that is, the two threads race for.
    assert marks.pop("by the key m") in (1, 2, 3, 4)
    assert marks == {"after it": 1, "owner rank stopped": 1}


def test_a_reader_keeps_what_a_recorder_that_was_killed_wrote(path: str) -> None:
    samples = list(SyntheticNode(ranks=1).samples(65))
    code = f"""
        import os, signal
        from recording.node import SyntheticNode
        from ranktop.recording.writer import Writer
        writer = Writer({path!r}, {{}})
        for sample in SyntheticNode(ranks=1).samples(65):
            writer.append(sample)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=60, env=environment)
    assert read(path) == samples
