"""The app through Pilot: what its views show, and when it starts and ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

import tui.app
import tui.viewer
from ranktop.reconcile import Reconciler
from ranktop.sample import Sample
from support import samples
from support.app import make_app, troubled
from support.feed import StoryFeed
from support.screen_text import screen_text
from tui.app import RanktopApp
from tui.draw.glyphs import UNICODE
from tui.themes import load_theme
from tui.timekeys import LiveTime

pytestmark = pytest.mark.usefixtures("utc")


async def test_it_shows_real_values_at_once() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause()
        text = screen_text(app)
    assert "node-a" in text
    assert "within plan since" in text
    assert text.count("120.00/120.00") == 8
    assert "1153 GB/1153 GB" in text
    assert "avail  346 GB" in text


async def test_a_dead_rank_is_the_sentence() -> None:
    app = make_app(StoryFeed(troubled))
    async with app.run_test(size=(120, 40)) as pilot:
        for _ in range(3):
            await pilot.pause(1.05)
        text = screen_text(app)
    assert "✖ TP5: pid 4247 is gone while its server's main process lives, since" in text
    assert "■ HOST-POOL-OVER" in text


VALUES = {
    "1": ["TP7", "120.00/120.00", "hits –"],
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


async def test_q_quits() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("q")
        await pilot.pause()
    assert app.return_code == 0
