"""The first picture: the lines that the app will draw, in the colours that Textual will give them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.console import Console
from rich.style import Style
from textual.filter import monochrome_style

import tui.app
from ranktop.reconcile import Reconciler
from ranktop.sample import Sample
from support import samples
from support.feed import StoryFeed
from support.many import many
from support.screen_text import screen_text
from tui.actions import ACTIONS, SHOW_VIEWS, VIEWS
from tui.app import RanktopApp
from tui.draw.glyphs import UNICODE
from tui.first import color_system, first_frame, first_lines
from tui.styles import in_grey, styles_of
from tui.themes import load_theme, packaged_themes
from tui.timekeys import LiveTime
from tui.views.view import View


def troubled() -> Sample:
    sample = samples.without_rank(samples.healthy(), 5)
    return samples.with_source(
        samples.with_pool(sample, 3, 132_000_000_000, 24_147_002_880), "loads", "error", "timeout"
    )


STORIES: dict[str, Callable[[], Sample]] = {"healthy": samples.healthy, "troubled": troubled, "many": lambda: many(64)}


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (60, 10)])
@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("view", VIEWS, ids=[view.name for view in VIEWS])
async def test_it_is_what_the_app_draws(
    view: View, story: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tui.app, "TICK_SECONDS", 3600.0)
    sample = STORIES[story]()
    time = LiveTime(StoryFeed([sample]), Reconciler().update)
    app = RanktopApp(time, [load_theme("night")], UNICODE, first_view=view.name)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        drawn = screen_text(app)
    frame = first_frame(Reconciler().update(sample), size[0], UNICODE)
    lines = first_lines(frame, view, SHOW_VIEWS, ACTIONS, size[1])
    assert len(lines) == size[1]
    assert {sum(len(span.text) for span in one) for one in lines} == {size[0]}
    mine = ["".join(span.text for span in one) for one in lines]
    # The keys stand on the last row, over what does not fit. In its last column Textual may have a scroll bar.
    *above, keys = drawn.splitlines()
    wanted = [*above[: size[1] - 1], keys]
    assert [one[: size[0] - 1].rstrip() for one in mine] == [one[: size[0] - 1].rstrip() for one in wanted]


@pytest.mark.parametrize("colorterm", ["", "truecolor", "24bit", "yes"])
@pytest.mark.parametrize("term", ["xterm", "xterm-256color", "xterm-kitty", "screen", "linux-16color", "tmux-256color"])
def test_as_many_colours_as_rich_would_use(term: str, colorterm: str) -> None:
    environment = {"TERM": term, "COLORTERM": colorterm}
    system = Console(force_terminal=True, _environ=environment).color_system
    names = {"truecolor": "TRUECOLOR", "256": "EIGHT_BIT", "standard": "STANDARD"}
    assert color_system(environment).name == names[str(system)]


@pytest.mark.parametrize("name", packaged_themes())
def test_without_colour_the_greys_are_those_of_textual(name: str) -> None:
    theme = load_theme(name)
    coloured, grey = styles_of(theme), styles_of(in_grey(theme))
    for key, style in coloured.items():
        wanted: Style = monochrome_style(style)
        assert (grey[key].color, grey[key].bgcolor) == (wanted.color, wanted.bgcolor), key
