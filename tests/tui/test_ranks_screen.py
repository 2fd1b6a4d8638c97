"""The Ranks screen through Pilot: what it shows, what its keys do, how it looks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from textual.app import App

from ranktop.reconcile import Reconciler
from ranktop.sample import Sample
from support import samples
from support.feed import StoryFeed
from tui.app import RanktopApp
from tui.draw.glyphs import ASCII, UNICODE, Glyphs
from tui.screens.help import HelpScreen
from tui.themes import load_theme
from tui.widgets.lines import Lines


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock on the screen is the sample's, in the zone of the test."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def make_app(feed: StoryFeed, *, glyphs: Glyphs = UNICODE, theme: str = "night") -> RanktopApp:
    other = "day" if theme == "night" else "night"
    return RanktopApp(feed, Reconciler().update, [load_theme(theme), load_theme(other)], glyphs)


def screen_text(app: App[None]) -> str:
    screen = app.screen_stack[0]
    rows: list[str] = []
    for part in screen.query(Lines):
        rows += ["".join(segment.text for segment in part.render_line(y)) for y in range(part.size.height)]
    return "\n".join(row.rstrip() for row in rows)


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


async def test_pause_keeps_the_picture_and_not_the_sampling() -> None:
    feed = StoryFeed(lambda second: samples.healthy(second))
    app = make_app(feed)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("space")
        before, asked = screen_text(app), feed.asked
        assert "paused" in before
        await pilot.pause(2.1)
        assert screen_text(app) == before
        assert feed.asked >= asked + 2
        await pilot.press("space")
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


async def test_q_quits() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("q")
        await pilot.pause()
    assert app.return_code == 0


async def test_scrolling_when_ranks_do_not_fit() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(80, 14)) as pilot:
        await pilot.pause()
        first = screen_text(app)
        await pilot.press("down", "down")
        await pilot.pause()
        assert screen_text(app) != first


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


SIZES = [(80, 24), (120, 40)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["night", "day"])
@pytest.mark.parametrize("story", ["healthy", "troubled"])
def test_looks(snap_compare: object, size: tuple[int, int], theme: str, story: str) -> None:
    sample = samples.healthy() if story == "healthy" else troubled(2)
    app = make_app(StoryFeed([sample]), theme=theme)
    assert snap_compare(app, terminal_size=size)  # type: ignore[operator]


def test_looks_in_ascii(snap_compare: object) -> None:
    assert snap_compare(make_app(StoryFeed([troubled(2)]), glyphs=ASCII), terminal_size=(80, 24))  # type: ignore[operator]


def test_help_looks(snap_compare: object) -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    assert snap_compare(app, terminal_size=(80, 24), press=["question_mark"])  # type: ignore[operator]
