"""Going back beyond what is kept in memory, into a recorder's file; and what a replay shows of its recording."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from ranktop.cli.node_options import NodeOptions, make_feed
from ranktop.demo.launcher import DemoNode
from ranktop.reconcile import Reconciler
from ranktop.recording.errors import RecordingError
from ranktop.recording.feed import RecordingFeed
from ranktop.recording.marks import Mark
from ranktop.recording.nearby import find_recordings, held_recordings
from ranktop.recording.past import open_past
from ranktop.recording.reader import Recording
from ranktop.recording.writer import Writer
from ranktop.sample import Sample
from support.command import RANKTOP
from support.feed import StoryFeed
from support.samples import healthy, with_pool
from tui.app import RanktopApp
from tui.draw.glyphs import UNICODE
from tui.themes import load_theme
from tui.timekeys import LiveTime, ReplayTime
from tui.widgets.lines import Lines


def text_of(app: RanktopApp) -> str:
    rows: list[str] = []
    for part in app.screen_stack[0].query(Lines):
        rows += ["".join(segment.text for segment in part.render_line(y)) for y in range(part.size.height)]
    return "\n".join(row.rstrip() for row in rows)


@pytest.mark.e2e
@pytest.mark.xdist_group("demo")
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_time_keys_go_on_into_the_file_of_a_recorder(tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "node.rtop"
    with DemoNode("healthy") as node:
        node.wait_ready(60)
        command = [str(RANKTOP), "record", "--pid", str(node.pid), "-o", str(path)]
        recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        feed = make_feed(NodeOptions(pids=(node.pid,)))
        try:
            _wait_for_samples(path, 8)
            assert str(path) in held_recordings()
            feed.start()
            feed.wait_first(3.0)
            app = RanktopApp(LiveTime(feed, Reconciler().update, open_past), [load_theme("night")], UNICODE)
            async with app.run_test(size=size) as pilot:
                await pilot.pause(1.1)
                assert "node.rtop" not in text_of(app)
                await pilot.press("space", *["left"] * 5)
                await pilot.pause()
                past = text_of(app)
                shown = app._time.shown()
                assert "from node.rtop" in past.splitlines()[0]
                assert past.count("TP") >= 8
                assert shown is not None
                await pilot.press("left_square_bracket")
                await pilot.pause(1.1)
                first = app._time.shown()
                assert first is not None
                assert first.sample.at_unix_seconds < shown.sample.at_unix_seconds
                recorder.send_signal(signal.SIGTERM)
                said = recorder.communicate(timeout=20)[1]
                assert os.listdir(tmp_path) == ["node.rtop"], "a look aside must not keep a recorder from closing"
                await pilot.press("right_square_bracket", "left_square_bracket")
                await pilot.pause()
                assert app._time.shown() == first
                await pilot.press("space")
                await pilot.pause()
                assert "node.rtop" not in text_of(app)
            with Recording(str(path)) as recording:
                assert first.sample == recording.sample(1)
                held = {recorded.sample.at_unix_seconds: recorded.sample for recorded in recording.samples()}
                assert shown.sample == held[shown.sample.at_unix_seconds]
        finally:
            feed.stop()
            recorder.kill()
    assert recorder.returncode == 0, said
    assert os.listdir(tmp_path) == ["node.rtop"]
    assert str(path) not in held_recordings()


def _wait_for_samples(path: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        # The file is there before its tables are.
        with suppress(RecordingError), Recording(str(path)) as recording:
            if recording.index.count >= count:
                return
        time.sleep(0.3)
    raise AssertionError("the recorder writes nothing")


def test_only_a_file_of_this_host_and_boot_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ranktop.recording import nearby
    from ranktop.recording.facts import facts

    own = facts(0.0, interval_seconds=1.0)
    monkeypatch.setattr(nearby, "held_recordings", lambda: iter(()))
    for name, meta in (("other", own | {"host": "elsewhere"}), ("boot", own | {"boot_id": "x"}), ("old", {})):
        Writer(str(tmp_path / f"{name}.rtop"), meta).close()
    (tmp_path / "junk.rtop").write_bytes(b"junk")
    assert list(find_recordings([str(tmp_path), "/nowhere"])) == []
    Writer(str(tmp_path / "own.rtop"), own).close()
    assert list(find_recordings([str(tmp_path)])) == [str(tmp_path / "own.rtop")]


def renamed(sample: Sample, address: str | None, pid: int) -> Sample:
    assert sample.processes is not None
    server = sample.processes.servers[0]
    other = replace(
        server,
        id=address or f"pid:{pid}",
        url=None if address is None else f"http://{address}",
        pid=pid,
        start_ticks=pid,
    )
    return replace(sample, processes=replace(sample.processes, servers=(other,)))


@pytest.mark.parametrize(
    ("recorded", "shown", "is_taken"),
    [
        (("127.0.0.1:30000", 10), ("127.0.0.1:30000", 10), True),
        (("127.0.0.1:30000", 10), ("127.0.0.1:30000", 20), True),
        ((None, 10), ("127.0.0.1:30000", 10), True),
        (("127.0.0.1:30001", 10), ("127.0.0.1:30000", 20), False),
        ((None, 10), (None, 20), False),
    ],
    ids=["the same", "started anew", "its address was not known", "another server", "another process"],
)
def test_only_a_file_of_a_server_that_is_shown_is_taken(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    recorded: tuple[str | None, int],
    shown: tuple[str | None, int],
    is_taken: bool,
) -> None:
    from ranktop.recording import nearby
    from ranktop.recording.facts import facts

    paths = [str(tmp_path / "other.rtop"), str(tmp_path / "wanted.rtop")]
    for path, server in zip(paths, (("127.0.0.1:31000", 99), recorded), strict=True):
        writer = Writer(path, facts(0.0, interval_seconds=1.0))
        for second in range(3):
            sample = renamed(healthy(float(second)), *server)
            writer.append(sample, replace(Reconciler().update(healthy(float(second))), sample=sample))
        writer.close()
    # The newest, and the first to be looked at, is of a server that nobody watches.
    os.utime(paths[0], (2e9, 2e9))
    monkeypatch.setattr(nearby, "held_recordings", lambda: iter(paths))
    past = open_past(renamed(healthy(9.0), *shown))
    assert (past.name if past is not None else None) == ("wanted.rtop" if is_taken else None)
    if past is not None:
        past.close()
    assert open_past(replace(healthy(9.0), processes=None)) is not None, "nothing is shown: what was?"


def wrong(second: int) -> Sample:
    return with_pool(healthy(float(second)), 3, 130 * 10**9, 24 * 10**9)


def replayed(path: Path) -> RanktopApp:
    feed = RecordingFeed(Recording(str(path)), Reconciler)
    return RanktopApp(ReplayTime(feed, feed.judge), [load_theme("night")], UNICODE)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_replay_shows_where_it_and_the_recorder_differ(tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "a.rtop"
    writer = Writer(str(path), {})
    # The recorder's judge was told of a wrong pool while all was well, and the other way round.
    for recorded, judged in ((healthy(0.0), wrong(0)), (wrong(1), healthy(1.0))):
        writer.append(recorded, replace(Reconciler().update(judged), sample=recorded))
    writer.close()
    app = replayed(path)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        before = [line for line in text_of(app).splitlines() if line.startswith(" ■ HOST-POOL-OVER")]
        await pilot.press("right")
        await pilot.pause()
        after = [line for line in text_of(app).splitlines() if line.startswith(" ■ HOST-POOL-OVER")]
    assert len(before) == len(after) == 1
    assert "only recorded" in before[0]
    assert "not recorded" in after[0]


async def test_after_a_jump_charts_show_the_quarter_of_an_hour_before_it(tmp_path: Path) -> None:
    path, judge = tmp_path / "a.rtop", Reconciler()
    writer = Writer(str(path), {})
    samples = [healthy(float(second)) for second in range(1300)]
    for sample in samples:
        writer.append(sample, judge.update(sample))
    writer.close()
    app = replayed(path)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app._time.go_to(samples[1200].at_unix_seconds)
        app._tick()
        assert len(app._time.course.trails.times()) == 121
        app._tick()
        trails = app._time.course.trails
        times = list(trails.times())
    assert times == sorted(times)
    assert times[0] == samples[300].at_unix_seconds
    assert times[-1] == samples[1200].at_unix_seconds
    assert len(times) == 780 + 121
    assert all(value == value for value in trails.node("host.available"))


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize(
    ("typed", "shows"),
    [("14:15", "14:15:00"), ("14:13:25", "14:13:25"), ("09:00", "14:13:20"), ("23:00", "14:16:39")],
    ids=["later", "earlier", "before its beginning", "after its end"],
)
async def test_a_replay_jumps_both_ways_and_to_its_ends(tmp_path: Path, typed: str, shows: str) -> None:
    path = tmp_path / "a.rtop"
    writer = Writer(str(path), {})
    for second in range(200):
        writer.append(healthy(float(second)))
    writer.close()
    app = replayed(path)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("t", *"14:14", "enter")
        await pilot.pause()
        assert " 14:14:00 replay paused" in text_of(app)
        await pilot.press("t", *typed, "enter")
        await pilot.pause()
        assert f" {shows} replay paused" in text_of(app)


async def test_live_charts_and_events_end_at_the_moment_that_is_shown() -> None:
    story = [wrong(second) if second >= 20 else healthy(float(second)) for second in range(40)]
    time = LiveTime(StoryFeed(story), Reconciler().update)
    app = RanktopApp(time, [load_theme("night")], UNICODE)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        while app._time.now() < story[-1].at_unix_seconds:
            app._tick()
        newest = list(app._time.course.trails.times())
        assert newest[-1] == story[-1].at_unix_seconds
        app.action_step(-30)
        await pilot.press("8")
        await pilot.pause()
        back, events = app._time.course.trails, text_of(app)
        assert list(back.times()) == [sample.at_unix_seconds for sample in story[:10]]
        assert len(back.node("host.available")) == 10
        app._tick()
        assert list(app._time.course.trails.times()) == [sample.at_unix_seconds for sample in story[:10]]
        await pilot.press("space")
        await pilot.pause()
        assert list(app._time.course.trails.times())[:40] == newest[:40]
        assert "HOST-POOL-OVER" in text_of(app)
        assert "HOST-POOL-OVER" not in events


def test_a_picture_that_stands_still_is_the_one_that_was_shown() -> None:
    """Also of a node of so many ranks that not every second is kept."""
    (rank,) = Reconciler().update(healthy()).ranks[:1]
    seconds = iter(range(10))

    class Feed:
        def sample(self) -> Sample:
            return healthy(float(next(seconds)))

    judged = Reconciler()
    live = LiveTime(Feed(), lambda sample: replace(judged.update(sample), ranks=(rank,) * 64))
    for _ in range(4):
        newest = live.tick()
    live.toggle_pause()
    stood = live.shown()
    assert stood is not None
    assert stood.sample.at_unix_seconds == newest.sample.at_unix_seconds
    live.tick()
    assert live.shown() is stood
    live.toggle_pause()
    assert live.shown() is not stood


async def test_a_replay_shows_the_marks_up_to_its_moment(tmp_path: Path) -> None:
    path, judge = tmp_path / "a.rtop", Reconciler()
    writer = Writer(str(path), {})
    samples = [healthy(float(second)) for second in range(60)]
    for sample in samples:
        at = sample.at_unix_seconds
        writer.append(sample, judge.update(sample), [Mark(at, "rollback began")] if sample is samples[30] else None)
    writer.close()
    app = replayed(path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("8")
        for second, is_made in ((29, False), (31, True)):
            app._time.go_to(samples[second].at_unix_seconds)
            app._tick()
            await pilot.pause()
            assert ("rollback began" in text_of(app)) is is_made
