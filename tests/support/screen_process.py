"""The screen as a process of its own: `python -m support.screen_process FILE [RANKS]`, a second of the story a tick.

Its recorder appends the second of every sample to FILE, so that a test sees whether sampling and recording go on.
"""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import Struct

from ranktop.reconcile import Reconciler, Verdict
from ranktop.recording.marks import Mark
from ranktop.sample import Sample
from support import samples
from support.feed import StoryFeed
from tui.app import RanktopApp
from tui.draw.glyphs import choose
from tui.themes import load_theme, packaged_themes
from tui.timekeys import LiveTime


class Status(Struct):
    """A recording that has no trouble."""

    used_bytes: int = 0
    problem: str | None = None


class Seconds:
    """A recorder of one number a sample."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.status = Status()

    def put(self, sample: Sample, verdict: Verdict | None = None) -> None:
        with self._path.open("a") as file:
            file.write(f"{sample.at_unix_seconds - samples.START:.0f}\n")

    def mark(self, text: str) -> None:
        """Nothing is marked."""

    def new_marks(self) -> list[Mark]:
        return []

    def stop(self) -> bool:
        return True


def main(path: str) -> None:
    """Until `q`."""
    feed = StoryFeed(samples.healthy)
    themes = [load_theme(name) for name in packaged_themes()]
    app = RanktopApp(LiveTime(feed, Reconciler().update), themes, choose(False), recorder=Seconds(Path(path)))
    app.run()


if __name__ == "__main__":
    main(sys.argv[1])
