"""What if: the other plan, beside the present one and this host."""

from __future__ import annotations

import pytest

from ranktop.plan.plan import PlanError
from ranktop.reconcile import Reconciler
from support import samples
from tui.draw.glyphs import UNICODE
from tui.trails import Trails
from tui.views.view import Frame
from tui.views.what_if import WhatIf, changed_plan


def shown(changes: str) -> str:
    verdict = Reconciler().update(samples.healthy())
    page = WhatIf(changes).draw(Frame(verdict, 120, UNICODE, Trails()))
    return "\n".join("".join(span.text for span in row.line) for row in page.rows)


def test_no_change_is_the_same_plan() -> None:
    assert changed_plan(samples.plan(), "", None).ranks == samples.plan().ranks


def test_another_size_beside_the_present_one() -> None:
    text = shown("--hicache-size 96")
    assert "2,345,216" in text
    assert "1,876,224" in text
    assert "-23" in text or "-24.00 GB" in text
    assert "fits" in text


def test_what_does_not_fit_says_by_how_much() -> None:
    text = shown("--hicache-size 200")
    assert "does not fit" in text
    assert "missing" in text


def test_a_ratio_takes_the_place_of_the_size() -> None:
    plan = changed_plan(samples.plan(), "--hicache-ratio 2", 432_000)
    host = plan.ranks[0].host
    assert host is not None
    assert host.tokens == 864_064


@pytest.mark.parametrize("changes", ["--hicache-size lots", "--no-such-flag 3", "--tp-size 0"])
def test_impossible_changes_are_told(changes: str) -> None:
    with pytest.raises(PlanError):
        changed_plan(samples.plan(), changes, None)
    assert changes.split()[0].strip("-").replace("-", "_") in shown(changes).replace("-", "_")
