"""Pictures for README and docs, made by the program itself: `make pictures`.

Starts a stand-in node, watches it without a terminal, and saves screens as SVG.
"""

from __future__ import annotations

import asyncio
import re
import sys
from html import unescape
from pathlib import Path

from ranktop.cli.node_options import NodeOptions, make_feed, make_reconciler
from ranktop.demo.launcher import DemoNode
from tui.app import RanktopApp
from tui.draw.glyphs import UNICODE
from tui.themes import load_theme
from tui.timekeys import LiveTime

HERE = Path(__file__).parent / "pictures"
SETTLE_SECONDS = 25
_BLANK = "\xa0"
_BLANKS = _BLANK + "\u2800"
"""Also the braille sign without a dot."""

_TEXT = re.compile(r'(<text class="[^"]*" x=")([\d.]+)(" y="[^"]*" textLength=")([\d.]+)("[^>]*>)([^<]*)</text>')

PICTURES = (
    ("healthy", "night", (("ranks", []), ("budget", ["2"]), ("tiers", ["3"]), ("numa", ["4"]), ("service", ["7"]))),
    ("pool-too-big", "night", (("breach", []),)),
    ("healthy", "day", (("ranks-day", []),)),
)


async def shoot(scenario: str, theme: str, shots: tuple[tuple[str, list[str]], ...]) -> None:
    """One node, several screens."""
    with DemoNode(scenario, seed=7) as node:
        node.wait_ready()
        options = NodeOptions(pids=(node.pid,))
        feed = make_feed(options)
        feed.start()
        app = RanktopApp(LiveTime(feed, make_reconciler(options).update), [load_theme(theme)], UNICODE)
        async with app.run_test(size=(120, 34)) as pilot:
            await asyncio.sleep(SETTLE_SECONDS)
            for name, keys in shots:
                await pilot.press(*keys or ["1"])
                await pilot.pause(1.2)
                (HERE / f"{name}.svg").write_text(offline(app.export_screenshot(title=f"ranktop demo {scenario}")))
        feed.stop()


def offline(svg: str) -> str:
    """Without fonts fetched from elsewhere, without the ids that change at every run, and with each piece of text
    where its first letter stands: some renderers (librsvg) drop the blanks before it."""
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"terminal-\d+", "terminal-ranktop", svg)
    return _TEXT.sub(_without_blanks, svg.replace("&#160;", _BLANK))


def _without_blanks(text: re.Match[str]) -> str:
    before, x, middle, length, after, told = text.groups()
    cells = len(unescape(told))
    lettered = told.strip(_BLANKS)
    cell = float(length) / cells
    begin = (len(told) - len(told.lstrip(_BLANKS))) * cell
    return f"{before}{float(x) + begin:g}{middle}{len(unescape(lettered)) * cell:g}{after}{lettered}</text>"


def main() -> None:
    HERE.mkdir(exist_ok=True)
    wanted = sys.argv[1:]
    for scenario, theme, shots in PICTURES:
        chosen = tuple(shot for shot in shots if not wanted or shot[0] in wanted)
        if chosen:
            asyncio.run(shoot(scenario, theme, chosen))


if __name__ == "__main__":
    main()
