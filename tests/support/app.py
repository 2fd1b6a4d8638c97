"""The app over a story of samples, as the tests of the screen use it."""

from __future__ import annotations

from ranktop.reconcile import Reconciler
from ranktop.sample import Sample
from support import samples
from support.feed import StoryFeed
from tui.app import RanktopApp
from tui.draw.glyphs import UNICODE, Glyphs
from tui.themes import load_theme
from tui.timekeys import LiveTime

DETAILS = {
    "rank": ("down", "enter"),
    "finding": ("end", "enter"),
    "what-if": ("w", *"--hicache-size", "space", *"96", "enter"),
    "help": ("question_mark",),
}
"""What is opened, and by which keys."""


def make_app(feed: StoryFeed, *, glyphs: Glyphs = UNICODE, theme: str = "night") -> RanktopApp:
    other = "day" if theme == "night" else "night"
    return RanktopApp(LiveTime(feed, Reconciler().update), [load_theme(theme), load_theme(other)], glyphs)


def breach(sample: Sample) -> Sample:
    return samples.with_pool(sample, 3, 132_000_000_000, 24_147_002_880)


def troubled(second: int) -> Sample:
    sample = breach(samples.healthy(second))
    if second >= 2:
        sample = samples.without_rank(sample, 5)
    return samples.with_source(sample, "loads" if second else "nvml", "error", "timeout", "no answer for 12 s")
