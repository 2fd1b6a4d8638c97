"""Frames that are held back: nothing is sent, and the app lives on."""

from __future__ import annotations

from textual.events import Resize
from textual.geometry import Size

from ranktop.reconcile import Reconciler
from support import samples
from support.feed import StoryFeed
from support.screen_text import screen_text
from tui.app import RanktopApp
from tui.draw.glyphs import UNICODE
from tui.themes import load_theme
from tui.timekeys import LiveTime


async def test_two_changes_of_size_meanwhile_are_laid_out_once_each() -> None:
    app = RanktopApp(LiveTime(StoryFeed(samples.healthy), Reconciler().update), [load_theme("night")], UNICODE)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        screen, lay_out = app.screen_stack[0], app.screen_stack[0]._refresh_layout
        counted = 0

        def count(size: Size | None = None, scroll: bool = False) -> None:
            nonlocal counted
            counted += 1
            assert counted < 20, "laid out for ever"
            lay_out(size, scroll)

        screen._refresh_layout = count
        app.hold_frames()
        for size in (Size(100, 30), Size(120, 40)):
            screen.post_message(Resize(size, size))
            # What stands between two of them keeps Textual from making one of both.
            screen.call_later(lambda: None)
        await pilot.pause(0.5)
        app.release_frames()
        await pilot.pause()
        assert screen_text(app).count("120.00/120.00") == 8
