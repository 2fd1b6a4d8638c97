"""Keys that open, filter, sort and move, through Pilot."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from textual.events import Key

from ranktop.sample import Sample
from support import samples
from support.app import breach, make_app
from support.feed import StoryFeed
from support.screen_text import screen_text
from tui.app import RanktopApp
from tui.screens.help import HelpScreen
from tui.views.view import FindingTarget
from tui.widgets.ask import Ask

pytestmark = pytest.mark.usefixtures("utc")


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
        assert "hits –" in screen_text(app)


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


@pytest.mark.parametrize("width_of_screen", [60, 80, 120])
async def test_a_filter_that_is_on_is_seen(width_of_screen: int) -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(width_of_screen, 24)) as pilot:
        await pilot.pause()
        await pilot.press("8", "slash", "t", "p", "5", "enter")
        await pilot.pause()
        last = screen_text(app).splitlines()[-1]
        assert "8events" in last.replace(" ", "")
        assert "esc filter 'tp5' off" in last
        await pilot.press("escape")
        await pilot.pause()
        assert "? help" in screen_text(app).splitlines()[-1]


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


def burst(app: RanktopApp, keys: Iterable[str]) -> None:
    """Keys as a slow line brings them: all in one read."""
    for key in keys:
        app.post_message(Key(key, key if len(key) == 1 else None))


async def test_what_is_typed_after_a_question_key_is_its_answer() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.pause()
        burst(app, ["slash", *"sorted"])
        await pilot.pause()
        assert app.query_one(Ask).value == "sorted"
        assert "statev" not in screen_text(app)
        await pilot.press("ctrl+u")
        burst(app, [*"tp5", "enter"])
        await pilot.pause()
        await pilot.pause()
        assert screen_text(app).count("120.00/120.00") == 1


async def test_keys_that_a_question_does_not_know_act_as_ever() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.pause()
        await pilot.press("slash", "down", "down")
        await pilot.pause()
        assert "›TP1" in screen_text(app)


async def test_the_cursor_stays_on_its_finding_when_a_worse_one_comes() -> None:
    def story(second: int) -> Sample:
        sample = breach(samples.healthy(second))
        return samples.without_rank(sample, 5) if second else sample

    app = make_app(StoryFeed(story))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("end", "up")
        await pilot.pause()
        chosen = app._main.chosen()
        assert isinstance(chosen, FindingTarget)
        assert chosen.finding.code == "HOST-POOL-OVER"
        for _ in range(3):
            app._tick()
        assert "RANK-DEAD" in screen_text(app)
        chosen = app._main.chosen()
        assert isinstance(chosen, FindingTarget)
        assert chosen.finding.code == "HOST-POOL-OVER"


async def test_a_narrow_budget_says_why_of_the_line_under_the_cursor_and_enter_says_all() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("2")
        await pilot.pause()
        before = screen_text(app).splitlines()
        assert any("up and down choose a line" in row for row in before)
        place = next(row for row, text in enumerate(before) if text.startswith(" host.primary"))
        first = next(row for row, text in enumerate(before) if text.startswith(" hbm.total"))
        await pilot.press(*["down"] * (place - first))
        await pilot.pause()
        after = screen_text(app).splitlines()
        told = next(row for row in after if row.startswith(" host.primary: "))
        assert "tokens x" in told
        assert [after.index(told), len(after)] == [
            next(row for row, text in enumerate(before) if "up and down choose" in text),
            len(before),
        ], "nothing moves with the cursor"
        await pilot.press("enter")
        await pilot.pause()
        detail = screen_text(app)
    assert "host.primary   TP0   127.0.0.1:30000" in detail
    assert "tokens x" in detail
    assert "shared_anon mapping" in detail, "what was seen, beside the formula of what was planned"
    assert detail.count(" bytes") == 3, "planned, seen and difference to the byte"


async def test_a_wide_budget_has_why_beside_its_lines_and_no_tail() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("2", "down")
        await pilot.pause()
        text = screen_text(app)
    assert "up and down choose a line" not in text
    assert "tokens x" in text


async def test_budget_opens_on_the_rank_that_is_wrong_and_stays_with_the_chosen_one() -> None:
    app = make_app(StoryFeed([breach(samples.healthy())]))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("2")
        await pilot.pause()
        assert " TP3  127.0.0.1:30000" in screen_text(app)
        await pilot.press(">", "1", "2")
        await pilot.pause()
        assert " TP4  127.0.0.1:30000" in screen_text(app)
        await pilot.press("1", "down", "2")
        await pilot.pause()
        assert " TP0  127.0.0.1:30000" in screen_text(app), "the one under the cursor"
