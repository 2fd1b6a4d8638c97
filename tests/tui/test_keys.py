"""Every action is on its keys, in the palette and in the help; the user's keys take the place of ours everywhere."""

from __future__ import annotations

from typing import Any

import pytest
from textual.command import CommandPalette

from ranktop.reconcile import Reconciler
from support import samples
from support.feed import StoryFeed
from support.screen_text import screen_text
from tui.actions import ACTIONS, SHOW_VIEWS
from tui.app import RanktopApp
from tui.draw.glyphs import UNICODE
from tui.fleet_actions import FLEET_ACTIONS
from tui.fleet_app import FleetApp
from tui.keys import Action, KeysError, check_names, rebound
from tui.screens.help import HelpScreen
from tui.themes import load_theme
from tui.timekeys import LiveTime
from tui.viewer import Viewer
from tui.widgets.lines import Lines

EVERY = (*SHOW_VIEWS, *ACTIONS)


def make_app(kind: type[RanktopApp] = RanktopApp, **keys: str) -> RanktopApp:
    time = LiveTime(StoryFeed([samples.healthy()]), Reconciler().update)
    return kind(time, [load_theme("night")], UNICODE, keys=keys)


def help_text(app: RanktopApp) -> list[str]:
    lines = app.screen.query_one(Lines)
    return ["".join(segment.text for segment in lines.render_line(y)) for y in range(lines.size.height)]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The actions that keys lead to; none of them is done."""
    found: list[str] = []

    async def run_action(app: RanktopApp, action: Any, *rest: Any, **others: Any) -> bool:
        found.append(str(action))
        return True

    monkeypatch.setattr(RanktopApp, "run_action", run_action)
    return found


def pressed(key: str) -> str:
    """As Pilot wants it: signs by their names."""
    names = {"?": "question_mark", "/": "slash", "<": "less_than_sign", ">": "greater_than_sign"}
    return (names | {"[": "left_square_bracket", "]": "right_square_bracket"}).get(key, key)


@pytest.mark.parametrize("action", EVERY, ids=[action.name for action in EVERY])
async def test_every_key_leads_to_its_action(action: Action, called: list[str]) -> None:
    keys = action.keys.split(",")
    async with make_app().run_test(size=(120, 40)) as pilot:
        await pilot.press(*(pressed(key) for key in keys))
        assert called == [action.call] * len(keys)


@pytest.mark.parametrize("action", EVERY, ids=[action.name for action in EVERY])
async def test_every_action_can_be_put_on_other_keys(action: Action, called: list[str]) -> None:
    async with make_app(**{action.name: "f9,z"}).run_test(size=(120, 40)) as pilot:
        await pilot.press("f9", "z")
        assert called == [action.call] * 2
        await pilot.press(pressed(action.keys.split(",")[0]))
        assert called == [action.call] * 2, "the key that it was on does nothing any more"


async def test_keys_can_be_swapped(called: list[str]) -> None:
    async with make_app(pause="m", mark="space").run_test(size=(120, 40)) as pilot:
        await pilot.press("m", "space")
        assert called == ["toggle_pause", "ask_mark"]


async def test_the_palette_opens_by_the_users_key_and_by_no_other() -> None:
    app = make_app(palette="p", pause="ctrl+p")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("ctrl+p")
        await pilot.pause()
        assert not CommandPalette.is_open(app)
        assert "paused" in screen_text(app), "its old key is free for another action"
        await pilot.press("p")
        await pilot.pause()
        assert CommandPalette.is_open(app)


@pytest.mark.parametrize(("kind", "actions"), [(RanktopApp, ACTIONS), (FleetApp, FLEET_ACTIONS)])
def test_every_action_is_one_of_the_app(kind: type[Viewer], actions: tuple[Action, ...]) -> None:
    missing = [one.call for one in (*SHOW_VIEWS, *actions) if not hasattr(kind, f"action_{one.call.partition('(')[0]}")]
    assert missing == []


async def test_every_action_is_in_the_palette() -> None:
    app = make_app(pause="p")
    async with app.run_test(size=(120, 40)):
        commands = {command.title: command.help for command in app.get_system_commands(app.screen)}
    assert {action.help.casefold() for action in EVERY if action.name != "palette"} == set(map(str.casefold, commands))
    assert "Copy the finding as Markdown (OSC 52)" in commands
    assert commands["Stop the picture, or go back to live"] == "key p"


async def test_the_help_and_the_bottom_line_show_the_keys_as_they_are_bound() -> None:
    app = make_app(help="f1", pause="p", budget="b")
    async with app.run_test(size=(160, 60)) as pilot:
        await pilot.pause()
        assert "f1 help" in screen_text(app)
        assert "p pause" in screen_text(app)
        assert "b budget" in screen_text(app)
        await pilot.press("f1")
        assert isinstance(app.screen, HelpScreen)
        await pilot.pause()
        text = [line.split() for line in help_text(app)]
        assert ["f1", "this", "help"] in text
        assert any(words[:3] == ["b", "view", "budget:"] for words in text)
        told = " ".join(" ".join(words) for words in text)
        assert [action.help for action in ACTIONS if action.help[:50] not in told] == []
        await pilot.press("f1")
        assert not isinstance(app.screen, HelpScreen)


async def test_the_help_scrolls_where_it_does_not_fit() -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("question_mark")
        await pilot.pause()
        assert not any("● ok" in line for line in help_text(app))
        await pilot.press("end")
        await pilot.pause()
        assert any("● ok" in line for line in help_text(app)), "the legend of the signs is its last line"


def test_refusals() -> None:
    with pytest.raises(KeysError, match="'m' is on pause and on mark"):
        rebound(ACTIONS, {"pause": "m"})
    with pytest.raises(KeysError, match="did you mean pagedown"):
        rebound(ACTIONS, {"pause": "pagdown"})
    with pytest.raises(KeysError, match="did you mean next_breach"):
        check_names(["nxt_breach"], ACTIONS)
    assert rebound(ACTIONS, {"pause": "m", "mark": "ctrl+x"})
