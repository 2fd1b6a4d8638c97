"""The app through Pilot: what its views show, what its keys do, how it looks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

import tui.app
import tui.viewer
from ranktop.reconcile import Reconciler, Verdict
from ranktop.sample import Event, Sample
from support import samples
from support.feed import StoryFeed
from support.screen_text import screen_text
from tui.app import RanktopApp
from tui.draw.glyphs import ASCII, UNICODE, Glyphs
from tui.screens.help import HelpScreen
from tui.themes import load_theme
from tui.timekeys import LiveTime
from tui.tools import Failed, Tools


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock on the screen is the sample's, in the zone of the test."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine, a picture is of the first sample."""
    monkeypatch.setattr(tui.app, "TICK_SECONDS", 3600.0)


def make_app(feed: StoryFeed, *, glyphs: Glyphs = UNICODE, theme: str = "night") -> RanktopApp:
    other = "day" if theme == "night" else "night"
    return RanktopApp(LiveTime(feed, Reconciler().update), [load_theme(theme), load_theme(other)], glyphs)


def breach(sample: Sample) -> Sample:
    return samples.with_pool(sample, 3, 132_000_000_000, 24_147_002_880)


def troubled(second: int) -> Sample:
    sample = breach(samples.healthy(second))
    if second >= 2:
        sample = samples.without_rank(sample, 5)
    return samples.with_source(sample, "loads" if second else "nvml", "error", "timeout", "no answer for 12 s")


async def test_it_shows_real_values_at_once() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause()
        text = screen_text(app)
    assert "node-a" in text
    assert "within plan since" in text
    assert text.count("120.00/120.00") == 8
    assert "1153 GB/1153 GB" in text
    assert "avail 346 GB" in text


async def test_a_dead_rank_is_the_sentence() -> None:
    app = make_app(StoryFeed(troubled))
    async with app.run_test(size=(120, 40)) as pilot:
        for _ in range(3):
            await pilot.pause(1.05)
        text = screen_text(app)
    assert "✖ TP5: pid 4247 is gone while its server's main process lives, since" in text
    assert "■ HOST-POOL-OVER" in text


VALUES = {
    "1": ["TP7", "120.00/120.00", "hits L1"],
    "2": ["host.primary", "2,345,216 tokens x 656 B x 78 layers", "91.40 GiB"],
    "3": ["L1>L2 backup", "2,000,000", "300,000"],
    "4": ["node 1", "80.0 GB free of 755 GB", "100 %"],
    "5": ["78 layers", "[0, 78)", "LayerSplit off"],
    "6": ["every server here is unified"],
    "7": ["first token", "running 3", "queued 0"],
    "8": ["nothing has happened"],
    "9": ["processes", "this node", "127.0.0.1:30000"],
}


@pytest.mark.parametrize("key", list(VALUES))
async def test_each_view_shows_its_values(key: str) -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.pause()
        await pilot.press(key)
        await pilot.pause()
        text = screen_text(app)
    for value in VALUES[key]:
        assert value in text


async def test_enter_opens_a_rank_and_escape_leaves_it() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.pause()
        await pilot.press("down", "down", "down", "enter")
        await pilot.pause()
        assert "TP2  127.0.0.1:30000  pid 4244" in screen_text(app)
        assert "GPU memory of the process" in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert "hits L1" in screen_text(app)


async def test_enter_opens_a_finding_with_its_evidence() -> None:
    app = make_app(StoryFeed([breach(samples.healthy())]))
    async with app.run_test(size=(120, 45)) as pilot:
        await pilot.pause()
        await pilot.press("end", "up", "enter")
        await pilot.pause()
        text = screen_text(app)
    assert "HOST-POOL-OVER" in text
    assert "difference_bytes" in text
    assert "11,999,989,760" in text
    assert "measured" in text


async def test_the_filter_keeps_ranks_and_escape_takes_it_off() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.pause()
        await pilot.press("slash", "t", "p", "5", "enter")
        await pilot.pause()
        assert screen_text(app).count("120.00/120.00") == 1
        await pilot.press("escape")
        await pilot.pause()
        assert screen_text(app).count("120.00/120.00") == 8


async def test_s_sorts() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.pause()
        await pilot.press("s")
        await pilot.pause()
        assert "statev" in screen_text(app)
        await pilot.press("s")
        await pilot.pause()
        assert "HBM GiBv" in screen_text(app)
        await pilot.press("S")
        await pilot.pause()
        assert "HBM GiB^" in screen_text(app)


async def test_time_goes_back_second_by_second_and_to_breaches() -> None:
    def story(second: int) -> Sample:
        sample = samples.healthy(second)
        return breach(sample) if second == 2 else sample

    app = make_app(StoryFeed(story))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(4.3)
        await pilot.press("N")
        await pilot.pause()
        text = screen_text(app)
        assert "132.00/120.00" in text
        assert "paused -" in text
        await pilot.press("left")
        await pilot.pause()
        assert "132.00/120.00" not in screen_text(app)
        await pilot.press("n")
        await pilot.pause()
        assert "132.00/120.00" in screen_text(app)
        await pilot.press("t", "minus", "1", "0", "m", "enter")
        await pilot.pause()
        assert "14:13:20" in screen_text(app), "the first moment that is kept"
        await pilot.press("space")
        await pilot.pause()
        assert screen_text(app).splitlines()[0].endswith("live")


async def test_budget_walks_through_the_ranks() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(120, 45)) as pilot:
        await pilot.pause()
        await pilot.press("2", "greater_than_sign")
        await pilot.pause()
        assert "TP1  127.0.0.1:30000  pid 4243" in screen_text(app)
        await pilot.press("less_than_sign", "less_than_sign")
        await pilot.pause()
        assert "TP7  127.0.0.1:30000  pid 4249" in screen_text(app)


async def test_events_tell_what_opened_and_closed() -> None:
    app = make_app(
        StoryFeed(lambda second: breach(samples.healthy(second)) if second == 1 else samples.healthy(second))
    )
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(5.3)
        await pilot.press("8")
        await pilot.pause()
        text = screen_text(app)
    assert "opened" in text
    assert "closed" in text
    assert text.index("closed") < text.index("opened"), "newest first"


async def test_batches_do_not_hide_what_happened() -> None:
    def story(second: int) -> Sample:
        at = samples.START + second
        batches = tuple(Event(at, "prefill_batch", samples.SERVER, "TP0", f"batch {second}.{n}") for n in range(400))
        dead = (Event(at, "oom_kill", samples.SERVER, "TP5", "the kernel took it"),) if second == 0 else ()
        return replace(samples.healthy(second), events=(*dead, *batches))

    app = make_app(StoryFeed(story))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        for _ in range(5):
            app._tick()
        await pilot.press("8")
        await pilot.pause()
        text = screen_text(app)
        assert "the kernel took it" in text, "two thousand batches later"
        assert "prefill_batch" not in text
        assert "300 log lines of batches left out: the filter `batch` shows them" in text
        await pilot.press("slash", *"prefill", "enter")
        await pilot.pause()
        assert screen_text(app).count("prefill_batch") > 30


async def test_pause_keeps_the_picture_and_not_the_sampling() -> None:
    feed = StoryFeed(lambda second: samples.healthy(second))
    app = make_app(feed)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("space")
        await pilot.pause()
        before, asked = screen_text(app), feed.asked
        assert "paused" in before
        await pilot.pause(2.1)
        assert "14:13:20 paused -2s" in screen_text(app)
        assert feed.asked >= asked + 2
        await pilot.press("space")
        await pilot.pause()
        after = screen_text(app)
    assert "live" in after
    assert after != before


async def test_help_lists_the_keys_and_closes_again() -> None:
    feed = StoryFeed([samples.healthy()])
    app = make_app(feed)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        asked = feed.asked
        await pilot.pause(1.1)
        assert feed.asked > asked, "a modal must not stop the sampling"
        await pilot.press("escape")
        assert not isinstance(app.screen, HelpScreen)


async def test_the_theme_key_goes_round() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(80, 24)) as pilot:
        assert app.theme == "night"
        await pilot.press("T")
        assert app.theme == "day"
        await pilot.press("T")
        assert app.theme == "night"


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
        self.stopped = False

    def put(self, sample: Sample, verdict: Verdict | None = None) -> None:
        assert verdict is not None
        assert verdict.sample is sample
        self.samples.append(sample)

    def mark(self, text: str) -> None:
        self.marks.append(text)

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
        await pilot.pause(1.1)
        assert "REC disk full" in screen_text(app)
        await pilot.press("r")
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


async def test_q_quits() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("q")
        await pilot.pause()
    assert app.return_code == 0


async def test_the_cursor_takes_the_screen_along() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(80, 14)) as pilot:
        await pilot.pause()
        assert "TP7" not in screen_text(app)
        await pilot.press("end")
        await pilot.pause()
        assert "TP7" in screen_text(app)
        assert "TP0" not in screen_text(app)
        await pilot.press("home")
        await pilot.pause()
        assert "TP0" in screen_text(app)
        await pilot.press("pagedown", "pagedown", "pagedown")
        await pilot.pause()
        assert "TP0" not in screen_text(app)


@pytest.mark.parametrize("size", [(20, 5), (1, 1), (400, 100)])
async def test_any_size_and_back(size: tuple[int, int]) -> None:
    app = make_app(StoryFeed(troubled))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.resize_terminal(*size)
        await pilot.pause(1.1)
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert "HOST-POOL-OVER" in screen_text(app)


DETAILS = {
    "rank": ("down", "enter"),
    "finding": ("end", "enter"),
    "what-if": ("w", *"--hicache-size", "space", *"96", "enter"),
    "help": ("question_mark",),
}
"""What is opened, and by which keys."""
OPENED = {
    **DETAILS,
    **{f"view {key}": (key,) for key in VALUES},
    "palette": ("ctrl+p",),
    "filter": ("slash",),
    "time": ("t",),
}


@pytest.mark.parametrize("press", list(OPENED.values()), ids=list(OPENED))
async def test_every_screen_and_dialog_lives_through_any_size_while_sampling_goes_on(press: tuple[str, ...]) -> None:
    feed = StoryFeed(troubled)
    app = make_app(feed)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press(*press)
        for size in ((20, 5), (1, 1), (300, 80), (120, 40)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        asked = feed.asked
        await pilot.pause(1.2)
        assert feed.asked > asked
        assert "node-a" in screen_text(app)


async def test_a_node_without_servers_says_so() -> None:
    empty = Sample(samples.START, 0.0, "node-a", processes=replace(samples.healthy(ranks=0)).processes)
    nothing = replace(empty, processes=replace(empty.processes, servers=(), ranks=()))  # type: ignore[type-var]
    app = make_app(StoryFeed([nothing]))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert "no SGLang server on this node yet" in screen_text(app)


async def test_hostile_names_are_text() -> None:
    sample = replace(samples.healthy(), host_name="\x1b]0;owned\x07[red]node")
    info = replace(sample.infos[samples.SERVER], served_model_name="[bold]\x1b[2Jmodel\u202e")
    app = make_app(StoryFeed([replace(sample, infos={samples.SERVER: info})]))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        text = screen_text(app)
    assert "\x1b" not in text
    assert "[red]node" in text
    assert "[bold] [2Jmodel" in text


SIZES = [(80, 24), (120, 40), (200, 60)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["night", "day"])
@pytest.mark.parametrize("story", ["healthy", "troubled"])
def test_ranks_looks(one_sample: None, snap_compare: object, size: tuple[int, int], theme: str, story: str) -> None:
    sample = samples.healthy() if story == "healthy" else troubled(2)
    app = make_app(StoryFeed([sample]), theme=theme)
    assert snap_compare(app, terminal_size=size)  # type: ignore[operator]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
@pytest.mark.parametrize("key", ["2", "3", "4", "5", "6", "7", "8", "9"])
def test_view_looks(one_sample: None, snap_compare: object, size: tuple[int, int], key: str) -> None:
    app = make_app(StoryFeed([troubled(2)]))
    assert snap_compare(app, terminal_size=size, press=[key])  # type: ignore[operator]


def test_looks_in_ascii(one_sample: None, snap_compare: object) -> None:
    assert snap_compare(make_app(StoryFeed([troubled(2)]), glyphs=ASCII), terminal_size=(80, 24))  # type: ignore[operator]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("press", list(DETAILS.values()), ids=list(DETAILS))
def test_detail_looks(one_sample: None, snap_compare: object, size: tuple[int, int], press: tuple[str, ...]) -> None:
    app = make_app(StoryFeed([troubled(2)]))
    assert snap_compare(app, terminal_size=size, press=press)  # type: ignore[operator]


def test_help_looks(one_sample: None, snap_compare: object) -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    assert snap_compare(app, terminal_size=(80, 24), press=["question_mark"])  # type: ignore[operator]


class Hasty(RanktopApp):
    """Takes one sample only, and that before the screen is composed, as may happen on a slow machine."""

    CSS_PATH = Path(tui.viewer.__file__).with_name("ranktop.tcss")

    def on_mount(self) -> None:
        self._tick()


async def test_what_is_shown_before_the_screen_has_its_parts_is_drawn_then() -> None:
    feed = StoryFeed(samples.healthy)
    app = Hasty(LiveTime(feed, Reconciler().update), [load_theme("night")], UNICODE)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert "TP7" in screen_text(app)


class Late(RanktopApp):
    """Its timer runs once more when its screens are gone, as on a busy machine."""

    CSS_PATH = Path(tui.viewer.__file__).with_name("ranktop.tcss")
    has_ticked_late = False

    async def _close_all(self) -> None:
        await super()._close_all()
        self._tick()
        self.has_ticked_late = True


async def test_a_timer_that_runs_while_it_closes_finds_nothing_amiss() -> None:
    app = Late(LiveTime(StoryFeed(samples.healthy), Reconciler().update), [load_theme("night")], UNICODE)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
    assert app.has_ticked_late
