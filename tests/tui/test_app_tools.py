"""Keys that do something besides drawing: record, mark, export, let go of the GPUs."""

from __future__ import annotations

import pytest

import tui.app
from ranktop.reconcile import Reconciler, Verdict
from ranktop.recording.marks import Mark
from ranktop.sample import Sample
from support import samples
from support.feed import StoryFeed
from support.screen_text import screen_text
from tui.app import RanktopApp
from tui.draw.glyphs import UNICODE
from tui.themes import load_theme
from tui.timekeys import LiveTime
from tui.tools import Failed, Tools

pytestmark = pytest.mark.usefixtures("utc")


class Hold:
    """A driver session that remembers what was asked of it."""

    is_released = False

    def release(self) -> None:
        self.is_released = True

    def resume(self) -> None:
        self.is_released = False


async def test_g_lets_go_of_the_gpus_and_takes_them_again() -> None:
    hold = Hold()
    time = LiveTime(StoryFeed([samples.healthy()]), Reconciler().update)
    app = RanktopApp(time, [load_theme("night")], UNICODE, Tools(gpus=hold))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("g")
        assert hold.is_released
        await pilot.press("g")
        assert not hold.is_released


class Status:
    used_bytes = 12_300_000
    problem: str | None = None


class Tape:
    """A recorder that remembers what it was given."""

    def __init__(self) -> None:
        self.status = Status()
        self.samples: list[Sample] = []
        self.marks: list[str] = []
        self.written: list[Mark] = []
        self.stopped = False

    def put(self, sample: Sample, verdict: Verdict | None = None) -> None:
        assert verdict is not None
        assert verdict.sample is sample
        self.samples.append(sample)

    def mark(self, text: str) -> None:
        self.marks.append(text)
        self.written.append(Mark(self.samples[-1].at_unix_seconds, text))

    def new_marks(self) -> list[Mark]:
        found, self.written = self.written, []
        return found

    def stop(self) -> bool:
        self.stopped = True
        return True


async def test_r_records_every_sample_and_m_marks() -> None:
    tape = Tape()
    time = LiveTime(StoryFeed(samples.healthy), Reconciler().update)
    tools = Tools(new_recorder=lambda: ("node.rtop", tape))
    app = RanktopApp(time, [load_theme("night")], UNICODE, tools)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("r")
        await pilot.press("question_mark")
        await pilot.pause(2.2)
        assert len(tape.samples) >= 2, "a modal must not stop the recording"
        await pilot.press("escape")
        await pilot.pause()
        assert "REC 12.3 MB" in screen_text(app)
        tape.status.problem = "disk full"
        await pilot.press("m", "h", "i", "enter")
        assert tape.marks == ["hi"]
        await pilot.pause()
        assert [notice.message for notice in app._notifications][-1] == "marked in the recording"
        await pilot.press("m", "enter")
        assert tape.marks == ["hi"], "nothing was typed"
        await pilot.pause(1.1)
        assert "REC disk full" in screen_text(app)
        await pilot.press("8")
        await pilot.pause()
        assert "hi" in [row.text for row in app._marks]
        assert any("mark" in row and row.rstrip().endswith(" hi") for row in screen_text(app).splitlines())
        await pilot.press("1", "r")
        assert tape.stopped
        assert app.recorder is None


async def test_a_recording_that_cannot_start_says_why() -> None:
    def refuse() -> tuple[str, Tape]:
        raise Failed("node.rtop: is there already")

    time = LiveTime(StoryFeed([samples.healthy()]), Reconciler().update)
    app = RanktopApp(time, [load_theme("night")], UNICODE, Tools(new_recorder=refuse))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await pilot.press("r")
        assert [note.message for note in app._notifications] == ["node.rtop: is there already"]


async def test_e_writes_what_is_shown() -> None:
    written: list[Verdict] = []

    def export(verdict: Verdict) -> str:
        written.append(verdict)
        return "node.json"

    time = LiveTime(StoryFeed([samples.healthy()]), Reconciler().update)
    app = RanktopApp(time, [load_theme("night")], UNICODE, Tools(export=export))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("e")
    assert written[0].ranks


async def test_free_memory_is_given_back_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tui.app, "GIVE_BACK_SECONDS", 0.05)
    given: list[None] = []
    time = LiveTime(StoryFeed([samples.healthy()]), Reconciler().update)
    app = RanktopApp(time, [load_theme("night")], UNICODE, Tools(give_back=lambda: given.append(None)))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.5)
    assert len(given) > 1
