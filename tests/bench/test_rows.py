"""What the bench prints and writes."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from bench.rows import Peer, Row, document, of_runs, table


def test_the_document_has_what_was_promised_of_it() -> None:
    row = of_runs("screen: CPU", [0.03, 0.02, 0.04], "s/s", 0.045).beside(Peer("nvitop", 0.0542), Peer("htop"))
    assert json.loads(json.dumps(document([row, Row("size", 3.0, "MB")]))) == [
        {"name": "screen: CPU", "value": 0.03, "unit": "s/s", "limit": 0.045, "peer": "nvitop 0.0542, htop not here"},
        {"name": "size", "value": 3.0, "unit": "MB", "limit": None, "peer": None},
    ]


@pytest.mark.parametrize(("value", "limit", "met"), [(1.0, 1.0, "yes"), (1.01, 1.0, "NO"), (9.0, None, "")])
def test_a_missed_budget_is_loud(value: float, limit: float | None, met: str) -> None:
    line = table([Row("x", value, "ms", limit)]).splitlines()[-1]
    assert line.endswith(f"  {met}".rstrip())


def test_the_table_has_the_spread_and_the_ratio() -> None:
    row = of_runs("x", [4.0, 2.0, 3.0], "ms").beside(Peer("btop", 1.5), Peer("htop"))
    line = " ".join(table([row]).splitlines()[-1].split())
    assert line == "x 2 3 4 ms btop 1.5 (2x), htop not here"


def test_every_part_is_a_file(pytestconfig: pytest.Config) -> None:
    text = (pytestconfig.rootpath / "tests" / "bench" / "__main__.py").read_text()
    parts = text.partition("PARTS = (")[2].partition(")")[0].replace('"', "").replace(",", " ").split()
    assert "screen" in parts
    assert all(find_spec(f"bench.bench_{part}") for part in parts)
