"""Help: all of it is there, in lines that are cut between words, and nothing shines through beside it."""

from __future__ import annotations

import pytest

from support import samples
from support.app import make_app
from support.feed import StoryFeed
from support.pages import text
from tui.draw.glyphs import ASCII, UNICODE, Glyphs
from tui.screens.help import help_lines
from tui.widgets.lines import Lines


def test_help_is_whole() -> None:
    what = "what if: another size, ratio or rank count beside the present one, over the flags of the launch that runs"
    lines = [text(each) for each in help_lines([("w", what), ("q", "quit")], UNICODE)]
    assert max(map(len, lines)) <= 75
    assert " ".join(" ".join(lines).split()).startswith(f"w {what} q quit")


def test_help_cuts_no_flag() -> None:
    for cells in range(60):
        lines = [
            text(each) for each in help_lines([("w", "x" * cells + " --hicache-storage-prefetch-policy")], UNICODE)
        ]
        assert not any(each.rstrip().endswith("-") for each in lines), lines


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_no_sign_means_two_things(glyphs: Glyphs) -> None:
    lines = [text(each) for each in help_lines([], glyphs)]
    told = {each[2:19].rstrip(): each[19:] for each in lines if each[2:19].strip()}
    assert told["~"].startswith("aged value")
    assert told[glyphs.more].startswith("text goes on where it is cut")


@pytest.mark.parametrize("width_of_screen", [80, 81, 82])
async def test_help_leaves_no_letter_of_the_page_beside_it(width_of_screen: int) -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(width_of_screen, 24)) as pilot:
        await pilot.pause()
        await pilot.press("question_mark")
        await pilot.pause()
        left = app.screen.get_child_by_id("help", Lines).region.x
        assert left == 0 or left * 2 + 80 <= width_of_screen + 1
