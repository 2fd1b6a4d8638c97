"""A thousand ranks: a view lists them all and draws none before it is on the screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ranktop.reconcile import Reconciler, Verdict
from support.many import many
from tui.draw.glyphs import UNICODE
from tui.trails import Trails
from tui.views import layers, numa, rank_rows, tiers
from tui.views.layers import LayersView
from tui.views.numa import NumaView
from tui.views.ranks import RanksView
from tui.views.tiers import TiersView
from tui.views.view import Frame, RankTarget, Row, View

RANKS = 1024


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    return Reconciler().update(many(RANKS))


def test_a_row_is_drawn_once_and_only_when_looked_at() -> None:
    drawn: list[int] = []

    def draw() -> tuple[()]:
        drawn.append(1)
        return ()

    row = Row(draw)
    assert drawn == []
    assert row.line == row.line == ()
    assert drawn == [1]


@pytest.mark.parametrize(
    ("view", "module", "name"),
    [
        (RanksView(), rank_rows, "row"),
        (NumaView(), numa, "_rank"),
        (LayersView(), layers, "_rank_row"),
        (TiersView(), tiers, "_occupancy_row"),
    ],
    ids=["ranks", "numa", "layers", "tiers"],
)
def test_no_rank_is_drawn_before_it_is_on_the_screen(
    view: View, module: Any, name: str, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[object] = []
    draw: Callable[..., object] = getattr(module, name)

    def counting(*what: object) -> object:
        drawn.append(what)
        return draw(*what)

    monkeypatch.setattr(module, name, counting)
    page = view.draw(Frame(verdict, 120, UNICODE, Trails()))
    assert drawn == []
    assert len(page.rows) >= RANKS or view.name in ("layers", "tiers")
    assert page.rows[-1].line
    assert len(drawn) == (1 if isinstance(page.rows[-1].target, RankTarget) or view.name == "tiers" else 0)
