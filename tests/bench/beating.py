"""The screen over judged samples, with a heart in its event loop: `python -m tests.bench.beating RANKS [FILE]`.

Judging is done before the screen starts, so that what is measured is the screen. On leaving, FILE gets the longest
pauses between two beats, in seconds.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from pathlib import Path

from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ranktop.reconcile import Reconciler, Verdict
from ranktop.sample import Sample
from support import samples
from support.feed import StoryFeed
from tests.bench.many import story
from tui import viewer
from tui.app import RanktopApp
from tui.draw.glyphs import UNICODE
from tui.themes import load_theme
from tui.timekeys import LiveTime

BEAT_SECONDS = 0.01
JUDGED = 12
"""Two metrics pages and more, so that every value of the story changes; then it starts again."""


class Judged:
    """Verdicts made beforehand, each with the time of its sample."""

    def __init__(self, ranks: int) -> None:
        judge = Reconciler().update
        self._verdicts = [judge(sample) for sample in itertools.islice(story(ranks), JUDGED)]
        self._next = itertools.cycle(self._verdicts)

    def __call__(self, sample: Sample) -> Verdict:
        verdict = next(self._next)
        times = {"at_unix_seconds": sample.at_unix_seconds, "at_monotonic_seconds": sample.at_monotonic_seconds}
        return replace(verdict, sample=replace(verdict.sample, **times))


class BeatingApp(RanktopApp):
    """Notes how late each beat of its loop came."""

    CSS_PATH = Path(viewer.__file__).with_name("ranktop.tcss")
    pauses: list[float]

    def on_mount(self) -> None:
        self.pauses = []
        self.run_worker(self._beat())

    async def _beat(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(BEAT_SECONDS)
            self.pauses.append(time.monotonic() - before - BEAT_SECONDS)


def main(ranks: int, file: str | None = None) -> None:
    """Until `q`."""
    kind = RanktopApp if file is None else BeatingApp
    app = kind(LiveTime(StoryFeed(samples.healthy), Judged(ranks)), [load_theme("night")], UNICODE)
    app.run()
    if isinstance(app, BeatingApp) and file is not None:
        Path(file).write_text(json.dumps(sorted(app.pauses)[-20:]))


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:3])
