"""Nodes that are large, long-named, short of what was planned, or unknown: no line is wider than the screen."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ranktop.reconcile import Reconciler, Verdict
from ranktop.sample import Sample
from support import samples
from support.many import many
from tui.actions import VIEWS
from tui.draw.glyphs import UNICODE
from tui.draw.spans import TextLine, width
from tui.trails import Trails
from tui.views.rank_rows import draw_grid
from tui.views.view import Frame, View


def long_names() -> Sample:
    sample = samples.healthy()
    assert sample.processes is not None
    ranks = tuple(
        replace(rank, tag=replace(rank.tag, dp=1, pp=0, cp=3, ep=15 + number))
        for number, rank in enumerate(sample.processes.ranks)
    )
    name = "gpu-node-0123456789.rack-17.row-4.hall-2.eu-central-1.example.internal"
    return replace(sample, host_name=name, processes=replace(sample.processes, ranks=ranks))


def short_pools() -> Sample:
    return samples.with_pool(samples.healthy(), 3, 64_000_000_000, 13_000_000_000)


def nothing() -> Sample:
    return Sample(samples.START, 1000.0, "node")


STORIES: dict[str, Callable[[], Sample]] = {
    "16 GPUs": lambda: many(16),
    "long names": long_names,
    "pools far below the plan": short_pools,
    "nothing is known": nothing,
}


def verdict(story: str) -> Verdict:
    return Reconciler().update(STORIES[story]())


def lines(view: View, shown: Verdict, cells: int) -> list[TextLine]:
    trails = Trails()
    trails.push(shown)
    page = view.draw(Frame(shown, cells, UNICODE, trails))
    return [*page.head, *(row.line for row in (*page.rows, *(page.tail or ())))]


@pytest.mark.parametrize("cells", [80, 120, 200])
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
@pytest.mark.parametrize("story", STORIES)
def test_no_line_is_wider_than_the_screen(story: str, view: View, cells: int) -> None:
    shown = lines(view, verdict(story), cells)
    assert shown
    assert [line for line in shown if width(line) > cells] == []


@pytest.mark.parametrize("view", [view for view in VIEWS if view.name in ("ranks", "numa", "layers")])
def test_rank_tags_are_whole(view: View) -> None:
    """Their ends tell them apart."""
    shown = ["".join(span.text for span in line) for line in lines(view, verdict("long names"), 120)]
    rows = [row for row in shown if row.startswith(" DP1 PP0 ATTN_CP3 TP")]
    assert len({row.split()[3] for row in rows}) == 8 or view.name == "layers"
    assert all("EP" in row for row in rows)


@pytest.mark.parametrize("cells", [80, 120, 200])
@pytest.mark.parametrize("story", ["16 GPUs", "long names", "pools far below the plan"])
def test_columns_stand_under_each_other(story: str, cells: int) -> None:
    grid = draw_grid(verdict(story), cells, UNICODE)
    ends = set()
    for row in grid.rows:
        text = "".join(span.text for span in row.line)
        assert "GiB" not in text, "units stand in the header"
        ends.add(text.index("/"))
    assert len(grid.rows) >= (16 if story == "16 GPUs" else 8)
    assert len(ends) == 1
