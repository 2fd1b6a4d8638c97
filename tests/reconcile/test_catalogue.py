"""The catalogue names exactly what rules can emit, thresholds that exist, and the page in docs is its print."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from conftest import ROOT
from ranktop.finding import SEVERITIES
from ranktop.reconcile.catalogue import entries, markdown
from ranktop.reconcile.thresholds import Thresholds

_CODE = re.compile(r"[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+\Z")


def emitted() -> dict[str, str]:
    """Every string constant in the rules' sources that looks like a code, and where it is."""
    sources = [*(ROOT / "ranktop/reconcile/rules").rglob("*.py"), *(ROOT / "ranktop/plan").rglob("*.py")]
    return {
        node.value: path.name
        for path in sources
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _CODE.match(node.value)
    }


def test_every_code_that_a_rule_can_emit_is_in_the_catalogue() -> None:
    assert set(emitted()) - set(entries()) == set()


def test_every_entry_has_a_rule() -> None:
    assert set(entries()) - set(emitted()) == set()


@pytest.mark.shared
def test_the_catalogue_holds_every_code_of_the_contract(shared: Path) -> None:
    text = (shared / "findings.md").read_text("utf-8")
    families = r"(?:PLAN|HOST|NUMA|HBM|GPU|NVML|L2|L3|TIER|SPEC|LAYER|PD|METRICS|SERVER|RANK|LAUNCH)"
    named = set(re.findall(rf"\b{families}(?:-[A-Z0-9]+)+\b", text))
    named |= {f"METRICS-{end}" for end in ("AUTH", "REDIRECT", "EMPTY", "TIMEOUT")}
    assert named == set(entries())


@pytest.mark.parametrize("code", entries())
def test_entry(code: str) -> None:
    entry = entries()[code]
    assert set(entry.thresholds) <= set(Thresholds.__struct_fields__)
    assert entry.severity == tuple(sorted(entry.severity, key=SEVERITIES.index))
    assert all((entry.rule, entry.inputs, entry.sources, entry.example))


def test_no_threshold_is_left_out() -> None:
    used = {name for entry in entries().values() for name in entry.thresholds}
    assert set(Thresholds.__struct_fields__) - used == {"close_after_updates"}


def test_the_page_is_up_to_date() -> None:
    page = (ROOT / "docs" / "findings.md").read_text("utf-8")
    assert page == markdown(), "run: python -m ranktop.reconcile.catalogue > docs/findings.md"
