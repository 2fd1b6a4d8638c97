"""The keys of time on a live screen, through Pilot."""

from __future__ import annotations

import pytest

from ranktop.sample import Sample
from support import samples
from support.app import breach, make_app
from support.feed import StoryFeed
from support.screen_text import screen_text

pytestmark = pytest.mark.usefixtures("utc")


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
