"""Replay is live again: the same samples, the same findings; and time that runs, stands, steps and jumps."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from ranktop.demo.scenarios import SCENARIOS
from ranktop.finding import Finding
from ranktop.reconcile import Reconciler
from ranktop.recording.errors import RecordingError
from ranktop.recording.feed import RecordingFeed
from ranktop.recording.findings import FindingHistory, differences
from ranktop.recording.judge import PAST_STEP, WARM_SAMPLES, ReplayJudge, verdicts
from ranktop.recording.marks import Mark
from ranktop.recording.reader import Recording
from ranktop.recording.writer import Writer
from ranktop.sample import Sample
from recording.node import START, SyntheticNode
from support.samples import healthy, with_pool, with_source, without_rank


def story(seconds: int = 400) -> list[Sample]:
    """A pool grows wrong twice, a rank goes, a source fails."""
    samples: list[Sample] = []
    for second in range(seconds):
        sample = healthy(float(second))
        if 100 <= second < 130 or 300 <= second < 310:
            sample = with_pool(sample, 3, 130 * 10**9, 24 * 10**9)
        if second >= 200:
            sample = without_rank(sample, 5)
        if 250 <= second < 260:
            sample = with_source(sample, "metrics", "error", "refused")
        samples.append(sample)
    return samples


def record(path: Path, samples: list[Sample], marks: dict[int, str] | None = None) -> list[tuple[Finding, ...]]:
    """Record as the recorder does; the findings of the live run."""
    writer, reconciler = Writer(str(path), {}), Reconciler()
    live: list[tuple[Finding, ...]] = []
    for number, sample in enumerate(samples, start=1):
        verdict = reconciler.update(sample)
        live.append(verdict.findings)
        text = (marks or {}).get(number)
        writer.append(sample, verdict, [Mark(sample.at_unix_seconds, text)] if text else None)
    writer.close()
    return live


class Clock:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Sample], list[tuple[Finding, ...]]]:
    path = tmp_path_factory.mktemp("story") / "a.rtop"
    samples = story()
    return path, samples, record(path, samples, {150: "owner rank stopped"})


Told = tuple[Path, list[Sample], list[tuple[Finding, ...]]]


@pytest.fixture
def feed(told: Told) -> tuple[RecordingFeed, Clock]:
    clock = Clock()
    return RecordingFeed(Recording(str(told[0])), Reconciler, monotonic=clock), clock


Replaying = tuple[RecordingFeed, Clock]


def test_a_replay_finds_what_the_live_run_found(told: Told) -> None:
    path, _, live = told
    with Recording(str(path)) as recording:
        assert [verdict.findings for _, verdict in verdicts(recording, Reconciler())] == live


def test_what_the_recorder_saw_is_what_was_open(told: Told) -> None:
    path, _, live = told
    with Recording(str(path)) as recording:
        history = FindingHistory(recording.events())
    for number, findings in enumerate(live, start=1):
        now = {(finding.code, finding.ranks, finding.severity) for finding in findings}
        assert {(finding.code, finding.ranks, finding.severity) for finding in history.open_at(number)} == now


def test_after_a_jump_what_the_recorder_saw_and_the_replay_does_not_find_is_told_apart(told: Told) -> None:
    path, _, live = told
    with Recording(str(path)) as recording:
        judge, history = ReplayJudge(recording, Reconciler), FindingHistory(recording.events())
        for seq in (390, 120, 121, 305, 15, WARM_SAMPLES + 1):
            verdict = judge.verdict(seq, history)
            assert verdict is not None
            unseen = differences(history.open_at(seq), verdict.findings)
            assert unseen.only_replayed == ()
            shown = {(f.code, f.ranks, f.since) for f in (*verdict.findings, *unseen.only_recorded)}
            assert shown == {(f.code, f.ranks, f.since) for f in live[seq - 1]}


def test_time_runs_at_the_speed_that_was_asked(feed: Replaying, told: Told) -> None:
    replay, clock = feed
    replay.play(4.0)
    clock.now += 10
    assert replay.sample() == told[1][40]
    replay.play(1000.0)
    assert replay.speed == 64.0
    clock.now += 100
    assert replay.sample() == told[1][-1]
    replay.stop()


def test_time_that_runs_judges_every_sample_between(feed: Replaying, told: Told) -> None:
    replay, clock = feed
    replay.play(32.0)
    for _ in range(12):
        clock.now += 1
        sample = replay.sample()
        assert replay.judge(sample).findings == told[2][replay.seq - 1]
        assert replay.differences(replay.judge(sample)) == ((), ())


def test_pause_step_and_seek(feed: Replaying, told: Told) -> None:
    replay, clock = feed
    samples = told[1]
    replay.seek(START + 200.5)
    replay.pause()
    clock.now += 30
    assert replay.sample() == samples[200]
    replay.step(3)
    assert replay.sample() == samples[203]
    replay.step(-10)
    assert replay.sample() == samples[193]
    replay.step(-1000)
    assert replay.sample() == samples[0]
    replay.seek(START + 10_000)
    assert replay.sample() == samples[-1]
    assert replay.span() == (samples[0].at_unix_seconds, samples[-1].at_unix_seconds)


def test_the_way_to_a_sample_is_every_verdict_since_the_one_before(feed: Replaying, told: Told) -> None:
    replay, clock = feed
    replay.seek(START + 250.5)
    replay.judge(replay.sample())
    assert replay.way.is_jump
    assert [verdict.sample for verdict in replay.way.verdicts] == told[1][250 - WARM_SAMPLES : 251]
    assert [verdict.sample for verdict in replay.earlier()] == told[1][0 : 250 - WARM_SAMPLES : PAST_STEP]
    replay.judge(replay.sample())
    assert replay.way == ((), False)
    replay.play(16.0)
    clock.now += 1
    replay.judge(replay.sample())
    assert not replay.way.is_jump
    assert [verdict.sample for verdict in replay.way.verdicts] == told[1][251:267]


def test_from_breach_to_breach(feed: Replaying) -> None:
    replay, _ = feed
    visited: list[int] = []
    while replay.next_breach():
        visited.append(replay.seq)
    assert visited == [101, 201, 301]
    back: list[int] = []
    while replay.previous_breach():
        back.append(replay.seq)
    assert back == [201, 101]
    assert [(mark.text, mark.seq) for mark in replay.marks] == [("owner rank stopped", 150)]


def test_a_file_that_is_written_grows_under_the_replay(tmp_path: Path) -> None:
    path, clock = tmp_path / "a.rtop", Clock()
    samples = list(SyntheticNode(ranks=1).samples(130))
    writer = Writer(str(path), {})
    writer.append(samples[0])
    replay = RecordingFeed(Recording(str(path)), Reconciler, monotonic=clock)
    replay.play(1.0)
    for sample in samples[1:]:
        writer.append(sample)
        clock.now += 1.01
        assert replay.sample().at_unix_seconds >= sample.at_unix_seconds - 2
    replay.stop()
    writer.close()


def test_time_runs_on_over_a_clock_that_was_set_back(tmp_path: Path) -> None:
    path, clock = tmp_path / "a.rtop", Clock()
    samples = list(SyntheticNode(ranks=1).samples(100))
    stepped = samples[:50] + [replace(s, at_unix_seconds=s.at_unix_seconds - 3600) for s in samples[50:]]
    record(path, stepped)
    replay = RecordingFeed(Recording(str(path)), Reconciler, monotonic=clock)
    replay.play(1.0)
    seen: list[float] = []
    for _ in range(110):
        clock.now += 1.0
        seen.append(replay.sample().at_monotonic_seconds)
    assert seen == sorted(seen)
    assert seen[-1] == samples[-1].at_monotonic_seconds
    replay.stop()


def test_a_damaged_chunk_is_stepped_over(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "a.rtop"
    samples = list(SyntheticNode(ranks=1).samples(180))
    record(path, samples)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("UPDATE block SET data = zeroblob(length(data)) WHERE first_seq = 61")
    db.close()
    replay = RecordingFeed(Recording(str(path)), Reconciler, monotonic=Clock())
    replay.go_to(60)
    replay.step(1)
    assert replay.sample() == samples[120]
    replay.step(-1)
    assert replay.sample() == samples[59]
    replay.stop()


def test_an_empty_recording_cannot_be_replayed(tmp_path: Path) -> None:
    Writer(str(tmp_path / "a.rtop"), {}).close()
    with pytest.raises(RecordingError, match="holds no sample"):
        RecordingFeed(Recording(str(tmp_path / "a.rtop")), Reconciler)


@pytest.mark.e2e
@pytest.mark.parametrize("scenario", sorted(SCENARIOS) if os.environ.get("RANKTOP_SOAK") else ["rank-dies"])
def test_a_scenario_of_the_demo_replays_to_the_same_findings(tmp_path: Path, scenario: str) -> None:
    import time

    from ranktop.cli.node_options import NodeOptions, make_feed
    from ranktop.demo.launcher import DemoNode

    path = tmp_path / "demo.rtop"
    writer, reconciler = Writer(str(path), {}), Reconciler()
    live: list[bytes] = []
    with DemoNode(scenario) as node:
        node.wait_ready(60)
        feed = make_feed(NodeOptions(pids=(node.pid,)))
        feed.start()
        for _ in range(15):
            sample = feed.sample()
            verdict = reconciler.update(sample)
            live.append(msgspec.msgpack.encode((verdict.findings, verdict.headline)))
            writer.append(sample, verdict)
            time.sleep(1)
        feed.stop()
    writer.close()
    with Recording(str(path)) as recording:
        replayed = [
            msgspec.msgpack.encode((verdict.findings, verdict.headline))
            for _, verdict in verdicts(recording, Reconciler())
        ]
        assert recording.damage == []
    assert replayed == live
