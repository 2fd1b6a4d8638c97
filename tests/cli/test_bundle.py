"""`ranktop bundle` of a stand-in node: private, listed, never overwriting, and judged as `check` judges the node."""

from __future__ import annotations

import json
import stat
import tarfile
from pathlib import Path

import pytest

from cli.test_demo_e2e import demo
from ranktop.cli import main

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("demo")]


def verdict(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """Findings and pool lines of one run, without times."""
    capsys.readouterr()
    code = main.run([*arguments, "--json"])
    document = json.loads(capsys.readouterr().out)
    pools = {
        (rank["rank"], line["line"]): (line["planned"], line["seen"], line["status"])
        for rank in document["ranks"]
        for line in rank["lines"]
        if line["line"] in ("host.primary", "host.indexer", "hbm.total")
    }
    # What is only worth knowing opens as the traffic of the stand-in goes on.
    findings = {
        (found["code"], found["severity"], tuple(found["ranks"]))
        for found in document["findings"]
        if found["severity"] != "info"
    }
    return {"code": code, "pools": pools, "findings": findings, "ranks": [rank["pid"] for rank in document["ranks"]]}


def test_a_bundle_says_what_check_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with demo("pool-too-big", "--headless", "60") as (_, pid):
        made = tmp_path / "node.tar.gz"
        assert main.run(["bundle", "-o", str(made), "--pid", str(pid), "--window", "1"]) == 0
        listed = capsys.readouterr().out
        told = verdict(capsys, "inspect", str(made))
        assert told["code"] == 1
        assert told == verdict(capsys, "check", "--pid", str(pid), "--window", "1")
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    with tarfile.open(made) as archive:
        names = archive.getnames()
        contents = archive.extractfile("CONTENTS.txt")
        assert contents is not None
        assert contents.read().decode() in listed
        whole = b"".join(file.read() for name in names if (file := archive.extractfile(name)) is not None)
    assert all(name in listed for name in names if name != "CONTENTS.txt")
    assert b"sk-" not in whole
    assert b"api_key" not in whole or b"(dropped)" in whole


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "node.tar.gz"
    made.write_bytes(b"mine")
    assert main.run(["bundle", "-o", str(made)]) == 2
    assert made.read_bytes() == b"mine"
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert main.run(["bundle", "-o", str(tmp_path / "link")]) == 2
    assert not (tmp_path / "nowhere").exists()
    assert "is there already" in capsys.readouterr().err


def test_without_a_server_no_file_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "node.tar.gz"
    assert main.run(["bundle", "-o", str(made), "--pid", "1", "--window", "0"]) == 3
    assert not made.exists()
    assert capsys.readouterr().err.startswith("ranktop: bundle: ")
