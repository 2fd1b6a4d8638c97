"""Without UTF-8 nothing but ASCII goes to the terminal: no cut mark, no bar, no frame of Textual's own."""

from __future__ import annotations

import re
from html import unescape

import pytest
from textual.app import App

from support.app import DETAILS, make_app, troubled
from support.feed import StoryFeed
from tui.draw.glyphs import ASCII

pytestmark = pytest.mark.usefixtures("utc")

_FROM_OUTSIDE = "\xa0"
"""An SVG has it for every blank."""


def signs(app: App[None]) -> set[str]:
    """That are not ASCII, of the whole screen as it is drawn."""
    svg = re.sub(r"<(style|title)>.*?</\1>", "", app.export_screenshot(), flags=re.DOTALL)
    drawn = unescape("".join(re.findall(r"<text[^>]*>(.*?)</text>", svg)))
    assert drawn
    return {sign for sign in drawn if not sign.isascii()} - {_FROM_OUTSIDE}


@pytest.mark.parametrize("press", [*([key] for key in "123456789"), ["ctrl+p"], ["g"], ["slash"], *DETAILS.values()])
@pytest.mark.parametrize("size", [(60, 16), (80, 24), (120, 40)])
async def test_only_ascii(press: list[str], size: tuple[int, int]) -> None:
    app = make_app(StoryFeed(troubled), glyphs=ASCII)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.press(*press)
        await pilot.pause(0.1)
        assert signs(app) == set()
