"""docs/metrics.md says what the exporter does."""

from __future__ import annotations

import re

from conftest import ROOT
from ranktop.exporter.families import points
from ranktop.exporter.metrics import UNITS, line_metric
from ranktop.exporter.reference import LINE_HELP, markdown
from support import fleet


def test_the_page_is_current() -> None:
    assert (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8") == markdown(), (
        "run: python -m ranktop.exporter.reference > docs/metrics.md"
    )


def test_every_line_is_described_with_its_unit() -> None:
    for verdict in (fleet.healthy(), fleet.troubled()):
        for line in (*(line for rank in verdict.ranks for line in rank.lines), *verdict.node.lines):
            unit, _ = LINE_HELP[re.sub(r"^numa\.\d+\.", "numa.N.", line.line)]
            assert unit == line.unit, line.line


def test_every_series_is_named() -> None:
    text = markdown()
    derived = {
        line_metric(scope, value, unit)
        for scope in ("rank", "node")
        for value in ("planned", "difference")
        for unit in UNITS
    }
    for point in points(fleet.troubled()):
        assert point.metric.name in text or point.metric.name in derived
