"""The fleet's app against a real Prometheus that scrapes pages of a few nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from textual.app import App
from textual.pilot import Pilot

from collectors.prometheus import Access, Prometheus
from ranktop.fleet.queries import Scope
from ranktop.fleet.source import Answer, Row, Track
from support import fleet
from support.http_answers import closed_port, hanging
from support.prometheus import answered, pages, prometheus, target
from tui.draw.glyphs import UNICODE
from tui.fleet_app import FleetApp
from tui.screens.help import HelpScreen
from tui.themes import load_theme
from tui.widgets.lines import Lines

pytestmark = pytest.mark.xdist_group("prometheus")
real = pytest.mark.tools("prometheus")

SGLANG = b"""sglang:num_running_reqs{tp_rank="0"} 5
sglang:num_running_reqs{tp_rank="1"} 5
sglang:num_queue_reqs{tp_rank="0"} 2
sglang:hicache_host_used_tokens{tp_rank="0"} 30
sglang:hicache_host_total_tokens{tp_rank="0"} 120
"""


def _page(path: str) -> bytes:
    return SGLANG if path == "/sglang" else fleet.page(fleet.troubled() if path == "/b" else fleet.healthy())


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Nodes a (well) and b (troubled) with exporters in cluster x, c with SGLang alone in cluster y."""
    with pages(_page) as address:
        targets = [
            target(address, "node-a:9472", "/a", cluster="x"),
            target(address, "node-b:9472", "/b", cluster="x"),
            target(address, "node-c:30000", "/sglang", cluster="y"),
            target(address, "node-a:30000", "/sglang", cluster="x"),
        ]
        with prometheus(tmp_path_factory.mktemp("prometheus"), targets) as url:
            source = Prometheus(Access(url))
            answered(source, "ranktop_severity", 2)
            answered(source, '{__name__=~"sglang[:_]num_running_reqs"}', 4)
            yield url


def make_app(url: str, *, interval_seconds: float = 0.5, timeout_seconds: float = 5.0) -> FleetApp:
    return FleetApp(
        Prometheus(Access(url, timeout_seconds=timeout_seconds)),
        Scope(group="cluster"),
        "fleet by test",
        [load_theme("night"), load_theme("day")],
        UNICODE,
        interval_seconds=interval_seconds,
    )


def text_of(app: App[None]) -> str:
    rows: list[str] = []
    for part in app.screen_stack[0].query(Lines):
        rows += ["".join(segment.text for segment in part.render_line(y)) for y in range(part.size.height)]
    return "\n".join(row.rstrip() for row in rows)


async def until(pilot: Pilot[None], app: App[None], words: str, seconds: float = 20.0) -> str:
    """The screen once it shows the words."""
    for _ in range(int(seconds / 0.1)):
        await pilot.pause(0.1)
        text = text_of(app)
        if words in text:
            return text
    raise AssertionError(f"{words!r} never came:\n{text_of(app)}")


@real
async def test_it_shows_the_worst_node_first_and_nodes_without_exporter_as_such(url: str) -> None:
    app = make_app(url)
    async with app.run_test(size=(160, 40)) as pilot:
        text = await until(pilot, app, "node-b")
    assert text.index("node-b:9472") < text.index("node-a:9472")
    assert "sorted by severity, worst first" in text
    assert "2 nodes: 1 at breach; 1 no exporter" in text
    assert "HOST-POOL-OVER" in text
    assert "cluster x  2 nodes" in text
    (bare,) = [row for row in text.splitlines() if "node-c:30000" in row]
    assert "no exporter" in bare
    assert "5/2" in bare, "copies of two ranks are one value"
    assert " 25 " in bare, "L2 use from SGLang's own series"
    assert "node-a:30000" not in text, "its exporter speaks for it"


@real
async def test_enter_opens_the_ranks_and_escape_comes_back(url: str) -> None:
    app = make_app(url)
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, app, "node-b")
        await pilot.press("down", "enter")
        text = await until(pilot, app, "TP7")
        assert "132.00/120.00" in text
        assert "node-b:9472" in text
        await pilot.press("9")
        await until(pilot, app, "hostmem")
        await pilot.press("1", "down", "enter")
        await until(pilot, app, "GPU memory of the process")
        await pilot.press("escape", "escape")
        await until(pilot, app, "cluster y")


@real
async def test_a_node_without_exporter_opens_with_what_there_is(url: str) -> None:
    app = make_app(url)
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, app, "node-c")
        await pilot.press("down", "down", "down", "enter")
        assert "running 5" in await until(pilot, app, "no exporter of ranktop on this node")


@real
async def test_filter_sort_and_help(url: str) -> None:
    app = make_app(url)
    async with app.run_test(size=(160, 40)) as pilot:
        await until(pilot, app, "node-b")
        await pilot.press("slash", *"pool-over", "enter")
        text = await until(pilot, app, "filter 'pool-over' off")
        assert "node-a" not in text
        await pilot.press("escape", "s")
        text = await until(pilot, app, "sorted by node, first name first")
        assert text.index("node-a:9472") < text.index("node-b:9472")
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)


@real
async def test_back_in_time_there_was_nothing_and_live_is_as_before(url: str) -> None:
    app = make_app(url)
    async with app.run_test(size=(160, 40)) as pilot:
        await until(pilot, app, "node-b")
        await pilot.press("t", *"-2h", "enter")
        text = await until(pilot, app, "no series of ranktop or SGLang at this time")
        assert "paused -2h" in text
        await pilot.press("space")
        assert "live" in await until(pilot, app, "node-b")


@pytest.mark.parametrize("kind", ["closed", "hanging"])
async def test_a_server_that_is_away_is_said_and_keys_stay_live(kind: str) -> None:
    with hanging() as silent:
        app = make_app(silent if kind == "hanging" else closed_port(), timeout_seconds=0.5)
        async with app.run_test(size=(160, 40)) as pilot:
            text = await until(pilot, app, "tried again within")
            assert text.splitlines()[0].endswith(" no answer")
            assert "no node" not in text
            assert ("refused" if kind == "closed" else "no complete answer within 0.5 s") in text
            await pilot.press("question_mark")
            assert isinstance(app.screen, HelpScreen)
            await pilot.press("escape", "q")
        assert app.return_code == 0


@real
async def test_it_recovers_alone(url: str) -> None:
    app = make_app(url)
    good, app._source = app._source, Prometheus(Access(closed_port()))
    async with app.run_test(size=(160, 40)) as pilot:
        await until(pilot, app, "tried again within")
        app._source = good
        assert "tried again" not in await until(pilot, app, "node-b")


@real
async def test_enter_without_a_cursor_opens_the_worst_node_and_budget_its_wrong_rank(url: str) -> None:
    app = make_app(url)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, app, "node-b")
        await pilot.press("enter")
        text = await until(pilot, app, "TP7")
        assert "node-b:9472" in text
        await pilot.press("2")
        text = await until(pilot, app, "host.primary")
        assert " TP3  " in text
        assert "132.00 GB" in text
        await pilot.press(">")
        await until(pilot, app, " TP4  ")
        await pilot.press("8")
        await until(pilot, app, "run `ranktop` on it")


@real
async def test_a_picture_without_newer_answers_is_not_called_live(url: str) -> None:
    app = make_app(url)
    async with app.run_test(size=(80, 24)) as pilot:
        text = await until(pilot, app, "node-b")
        assert text.splitlines()[0].endswith(" live")
        app._source = Prometheus(Access(closed_port()))
        text = await until(pilot, app, "shown is ")
        assert text.splitlines()[0].endswith(" stale")
        assert "node-b" in text
        assert "tried again within" in text, "whole below the nodes"


class Drifted:
    """A source without a server: two nodes of one model that differ in their version."""

    def instant(self, query: str, at_unix_seconds: float | None = None) -> Answer:
        rows: list[Row] = []
        for name, version in (("a:1", "0.5.18"), ("b:1", "0.5.23")):
            rows += [
                Row({"ranktop_part": "severity", "instance": name}, 0.0),
                Row(
                    {"ranktop_part": "servers", "instance": name, "server": "s", "model": "m", "version": version}, 1.0
                ),
            ]
        return Answer(tuple(rows) if "ranktop_part" in query else ())

    def over(self, query: str, start: float, end: float, step_seconds: float) -> list[Track]:
        return []


async def test_a_finding_across_nodes_opens_with_its_evidence() -> None:
    app = FleetApp(Drifted(), Scope(), "fleet by test", [load_theme("night")], UNICODE)
    async with app.run_test(size=(160, 40)) as pilot:
        await until(pilot, app, "LAUNCH-DRIFT")
        await pilot.press("down", "down", "down", "enter")
        text = await until(pilot, app, "start these servers from one launch")
        assert "0.5.23" in text
        await pilot.press("escape")
        await until(pilot, app, "free GiB")
