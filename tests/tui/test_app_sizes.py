"""Every screen and dialog at any size, through Pilot."""

from __future__ import annotations

import pytest

from support.app import DETAILS, make_app, troubled
from support.feed import StoryFeed
from support.screen_text import screen_text

pytestmark = pytest.mark.usefixtures("utc")


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


OPENED = {
    **DETAILS,
    **{f"view {key}": (key,) for key in "123456789"},
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
