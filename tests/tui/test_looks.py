"""How the screens look: snapshots."""

from __future__ import annotations

import pytest

from support import samples
from support.app import DETAILS, make_app, troubled
from support.feed import StoryFeed
from tui.draw.glyphs import ASCII

pytestmark = pytest.mark.usefixtures("utc")


SIZES = [(80, 24), (120, 40), (200, 60)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["night", "day"])
@pytest.mark.parametrize("story", ["healthy", "troubled"])
def test_ranks_looks(one_sample: None, snap_compare: object, size: tuple[int, int], theme: str, story: str) -> None:
    sample = samples.healthy() if story == "healthy" else troubled(2)
    app = make_app(StoryFeed([sample]), theme=theme)
    assert snap_compare(app, terminal_size=size)  # type: ignore[operator]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
@pytest.mark.parametrize("key", ["2", "3", "4", "5", "6", "7", "8", "9"])
def test_view_looks(one_sample: None, snap_compare: object, size: tuple[int, int], key: str) -> None:
    app = make_app(StoryFeed([troubled(2)]))
    assert snap_compare(app, terminal_size=size, press=[key])  # type: ignore[operator]


def test_looks_in_ascii(one_sample: None, snap_compare: object) -> None:
    assert snap_compare(make_app(StoryFeed([troubled(2)]), glyphs=ASCII), terminal_size=(80, 24))  # type: ignore[operator]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("press", list(DETAILS.values()), ids=list(DETAILS))
def test_detail_looks(one_sample: None, snap_compare: object, size: tuple[int, int], press: tuple[str, ...]) -> None:
    app = make_app(StoryFeed([troubled(2)]))
    assert snap_compare(app, terminal_size=size, press=press)  # type: ignore[operator]


def test_help_looks(one_sample: None, snap_compare: object) -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    assert snap_compare(app, terminal_size=(80, 24), press=["question_mark"])  # type: ignore[operator]
