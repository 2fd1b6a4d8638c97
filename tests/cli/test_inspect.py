"""`ranktop inspect` as a command: exit codes, JSON by contract, one line for what goes wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ranktop.cli import main
from support.node_text import log, page

REFUSED = "Not enough host memory available. Requesting 40.00 GB but only have 44.87 GB free."


def test_a_breach_exits_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.log").write_text(log(REFUSED))
    assert main.run(["inspect", str(tmp_path)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "PLAN-HOST-GATE" in out
    assert "TP0: a pool was refused: 40.00 GB + 10.74 GB reserve = 50.74 GB > 44.87 GB available" in out
    assert "a.log: server log" in out


def test_json_is_that_of_check_and_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "1.prom").write_text(page({'sglang:num_running_reqs{tp_rank="0"}': 1}))
    (tmp_path / "2.log").write_text(log("The server is fired up and ready to roll!"))
    (tmp_path / "3").write_text("nothing of use\n")
    assert main.run(["inspect", "--json", str(tmp_path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert document["window_seconds"] is None
    (rank,) = document["ranks"]
    assert (rank["rank"], rank["pid"]) == ("TP0", None)
    assert document["servers"][0]["calibration"] is None
    assert [note["kind"] for note in document["files"]] == ["metrics page", "server log", "unknown"]
    assert any("no host memory" in line for line in document["missing"])


def test_nothing_of_use_exits_3_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").write_text("nothing of use\n")
    assert main.run(["inspect", str(tmp_path / "a")]) == 3
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert told.err.startswith("ranktop: inspect: nothing to look at: ")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["missing.log"], 3, "missing.log: cannot be read: No such file or directory"),
        ([], 2, "Missing argument 'PATH...'"),
        (["--every", "0", "x"], 2, "--every 0.0: seconds between 0 and 86400 are accepted"),
        (["--every", "nan", "x"], 2, "--every nan"),
        (["--sglang", "newest", "x"], 2, "--sglang 'newest': a version such as 0.5.18 is accepted"),
        (["--launch", "missing.sh", "x"], 2, "--launch missing.sh: No such file or directory"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main.run(["inspect", *arguments]) == code
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_a_launch_that_is_given_makes_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.sh").write_text(
        "python -m sglang.launch_server --model-path x/GLM-5.2-FP8 --enable-hierarchical-cache --hicache-size 96 "
        "--kv-cache-dtype fp8_e4m3\n"
    )
    (tmp_path / "a.log").write_text(log("Allocating 96.00 GB host memory for hierarchical KV cache.", tag=""))
    arguments = [
        "inspect",
        "--json",
        "--launch",
        str(tmp_path / "run.sh"),
        "--sglang",
        "0.5.17",
        str(tmp_path / "a.log"),
    ]
    assert main.run(arguments) == 0
    (server,) = json.loads(capsys.readouterr().out)["servers"]
    assert (server["plan_origin"], server["plan"]["sglang"]["version"]) == ("given", "0.5.17")
    assert server["calibration"]["fits"] == "0.5.17"


def test_no_screen_and_no_driver_is_loaded() -> None:
    import subprocess

    code = "import sys, ranktop.cli.inspect; print([n for n in ('textual', 'pynvml', 'rich') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
