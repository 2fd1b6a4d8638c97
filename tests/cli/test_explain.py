"""`ranktop explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ranktop.cli.errors import UsageProblem
from ranktop.cli.explain import explain, explain_text, known_code, list_text
from ranktop.reconcile.catalogue import entries
from ranktop.reconcile.thresholds import Thresholds


def test_every_code_is_listed_in_80_columns() -> None:
    lines = list_text().splitlines()
    listed = {line.split()[0] for line in lines if line.startswith("  ")}
    assert listed == set(entries())
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("code", entries())
def test_an_entry_fits_80_columns(code: str) -> None:
    text = explain_text(code, Thresholds())
    assert text.startswith(f"{code}  (")
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("spelling", ["host-oom-kill", "Host_OOM_Kill", " HOST-OOM-KILL "])
def test_spelling_does_not_matter(spelling: str) -> None:
    assert known_code(spelling) == "HOST-OOM-KILL"


@pytest.mark.parametrize(
    ("typo", "meant"), [("HOST-OOM-KIL", "HOST-OOM-KILL"), ("oom", "HOST-OOM-KILL"), ("NUMA-REMOT", "NUMA-REMOTE")]
)
def test_a_typo_is_answered_with_the_code_that_was_meant(typo: str, meant: str) -> None:
    with pytest.raises(UsageProblem, match=f"did you mean.*{meant}"):
        known_code(typo)


def test_thresholds_are_those_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ranktop").mkdir()
    (tmp_path / "ranktop" / "config.toml").write_text("[thresholds]\nhung_seconds = 90.0\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    shown = CliRunner().invoke(explain, ["server-hung"])
    assert "hung_seconds = 90  (default 60)" in shown.output
    document = json.loads(CliRunner().invoke(explain, ["server-hung", "--json"]).output)
    assert document["schema"] == 1
    assert document["codes"][0]["thresholds"] == {"hung_seconds": 90.0, "hung_pages": 3}


def test_json_without_a_code_lists_all() -> None:
    document = json.loads(CliRunner().invoke(explain, ["--json"]).output)
    assert [one["code"] for one in document["codes"]] == list(entries())
