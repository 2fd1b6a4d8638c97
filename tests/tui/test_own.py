"""What the Sources view says of ranktop itself."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from ranktop.reconcile import Reconciler
from ranktop.sample import Asked, OwnUse
from support import samples
from support.feed import StoryFeed
from support.terminal import Terminal
from tui.app import RanktopApp
from tui.draw.glyphs import UNICODE
from tui.draw.own import own_lines
from tui.own import Asking, OwnCost, OwnTrail
from tui.themes import load_theme
from tui.timekeys import LiveTime
from tui.tools import Tools
from tui.widgets.lines import Lines

RUN = """
import sys
sys.path[:0] = [{tests!r}]
from ranktop.reconcile import Reconciler
from support import samples
from support.feed import StoryFeed
from tui.app import RanktopApp
from tui.draw.glyphs import UNICODE
from tui.themes import load_theme
from tui.timekeys import LiveTime
app = RanktopApp(LiveTime(StoryFeed(samples.healthy), Reconciler().update), [load_theme("night")], UNICODE)
app.run()
open({told!r}, "w").write(str(app.written_bytes))
"""


def use(at: float, cpu: float, requests: int = 0, seconds: float = 0.0, walks: int = 0) -> OwnUse:
    return OwnUse(at, cpu, 50 << 20, walks, {"127.0.0.1:30000": Asked(requests, 0, seconds)} if requests else {})


def test_a_rate_needs_two_readings_from_after_the_start() -> None:
    trail = OwnTrail()
    assert trail.push(use(100.0, 0.9), 20_000).cpu_share is None
    assert trail.push(use(102.0, 1.0), 40_000).cpu_share is None
    cost = trail.push(use(104.0, 1.04), 41_000)
    assert cost.cpu_share == pytest.approx(0.02)
    assert cost.terminal_bytes_per_second == pytest.approx(500)
    assert cost.asked == ()


def test_old_readings_leave_the_window() -> None:
    trail = OwnTrail()
    for second in range(120):
        # Busy for the first minute.
        cost = trail.push(use(float(second), 0.5 * min(second, 60)), 100 * second)
    assert cost.cpu_share == 0
    assert cost.terminal_bytes_per_second == pytest.approx(100)


def test_the_share_of_a_server_is_its_answering_time() -> None:
    trail = OwnTrail()
    trail.push(use(0.0, 0.0), 0)
    trail.push(use(10.0, 0.0, requests=2, seconds=0.1), 0)
    (asking,) = trail.push(use(20.0, 0.0, requests=6, seconds=0.25), 0).asked
    assert asking == Asking("127.0.0.1:30000", pytest.approx(0.015), pytest.approx(24))


def test_a_server_that_appears_counts_from_nothing() -> None:
    trail = OwnTrail()
    trail.push(use(0.0, 0.0), 0)
    trail.push(use(10.0, 0.0), 0)
    (asking,) = trail.push(use(20.0, 0.0, requests=1, seconds=0.1), 0).asked
    assert asking.share == pytest.approx(0.01)


def roles_of(cost: OwnCost, width: int = 120) -> dict[str, str]:
    return {span.text.strip(): span.role for text_line in own_lines(cost, width, "–", "…") for span in text_line}


def test_what_is_over_its_budget_is_a_warning() -> None:
    good = OwnCost(0.018, 48 << 20, 800.0, 0, (Asking("a:1", 0.002, 24),))
    assert "warn" not in roles_of(good).values()
    bad = OwnCost(0.05, 61 << 20, 3000.0, 1, (Asking("a:1", 0.02, 24),))
    roles = roles_of(bad)
    assert [text for text, role in roles.items() if role == "warn"] == ["5.0 %", "61.0 MiB", "3.0 kB/s", "1", "2.00 %"]


@pytest.mark.parametrize("width", [80, 120])
def test_unknown_is_no_zero_and_lines_fit(width: int) -> None:
    lines = own_lines(OwnCost(None, None, None, 0, ()), width, "–", "…")
    texts = ["".join(span.text for span in text_line) for text_line in lines]
    assert [len(text) for text in texts] == [width, width]
    assert "CPU – %  memory –  terminal –  page walks 0" in texts[0]


async def test_sources_shows_it_and_can_come_first() -> None:
    readings = iter(use(10.0 * second, 0.3 * second, requests=second, seconds=0.02 * second) for second in range(100))
    feed = StoryFeed(samples.healthy)
    time = LiveTime(feed, Reconciler().update)
    tools = Tools(own=lambda: next(readings))
    app = RanktopApp(time, [load_theme("night")], UNICODE, tools, first_view="sources")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(3.3)
        head = app.screen_stack[0].query_one("#head", Lines)
        text = "".join(segment.text for y in range(2) for segment in head.render_line(y))
    assert "ranktop itself  CPU 3.0 %  memory 50.0 MiB  terminal –  page walks 0" in text
    assert "at most  0.20 % 127.0.0.1:30000 (6 requests/min)" in text


def test_the_bytes_are_those_that_arrive(tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = RUN.format(tests=str(Path(__file__).parents[1]), told=str(told))
    terminal = Terminal([sys.executable, "-c", script], 120, 40)
    try:
        assert terminal.read_until("TP7", 30) is not None
        terminal.read_for(2.5)
        terminal.press(b"q")
        assert terminal.wait(20) == 0
    except BaseException:
        os.kill(terminal.pid, signal.SIGKILL)
        raise
    # What Textual writes past its own driver when it leaves is not counted.
    assert int(told.read_text()) == pytest.approx(len(terminal.received), rel=0.01)
