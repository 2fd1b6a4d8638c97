"""What the Events view tells, through Pilot."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ranktop.sample import Event, Sample
from support import samples
from support.app import breach, make_app
from support.feed import StoryFeed
from support.screen_text import screen_text

pytestmark = pytest.mark.usefixtures("utc")


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
