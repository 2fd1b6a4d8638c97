"""`ranktop why` as a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ranktop.cli.errors import NothingToLookAt, UsageProblem
from ranktop.cli.why import why

KILL = "Out of memory: Killed process 4242 (sglang::schedul) total-vm:1kB, anon-rss:1kB, shmem-rss:250396952kB\n"


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    gone = str(tmp_path / "nowhere")
    return ["--proc-root", gone, "--sys-root", gone, "--pods-root", gone]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(why, arguments, standalone_mode=False)


def kernel_log(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "dmesg"
    path.write_text(text)
    return ["--kernel-log", str(path)]


def test_a_death_is_exit_1_and_fits_80_columns(tmp_path: Path, nowhere: list[str]) -> None:
    done = run(*nowhere, *kernel_log(tmp_path, KILL))
    assert done.return_value == 1
    assert "1 death found" in done.output
    assert "proven   victim" in done.output
    long = [line for line in done.output.splitlines() if len(line) > 80 and str(tmp_path) not in line]
    assert long == []


def test_no_death_is_exit_0(tmp_path: Path, nowhere: list[str]) -> None:
    done = run(*nowhere, *kernel_log(tmp_path, "usb 1-1: new device\n"))
    assert (done.return_value, "no deaths found" in done.output) == (0, True)


def test_nothing_that_can_be_read_is_exit_3(tmp_path: Path, nowhere: list[str]) -> None:
    recording = tmp_path / "a.rtop"
    recording.write_text("no recording")
    done = run(*nowhere, "--kernel-log", "/dev/null", "--recording", str(recording))
    assert isinstance(done.exception, NothingToLookAt)
    assert str(done.exception).startswith("why: nothing could be read: /dev/null: cannot be read: no regular file")


def test_json(tmp_path: Path, nowhere: list[str]) -> None:
    document = json.loads(run(*nowhere, *kernel_log(tmp_path, KILL), "--json").output)
    assert document["schema"] == 1
    (death,) = document["deaths"]
    assert (death["cause"], death["pids"]) == ("out of memory", [4242])
    assert {claim["about"]: claim["certainty"] for claim in death["claims"]} == {
        "victim": "proven",
        "constraint": "likely",
        "limit": "unknown",
        "planned": "unknown",
        "grew_last": "unknown",
    }
    assert all(set(source) == {"source", "state", "detail"} for source in document["sources"])


@pytest.mark.parametrize("url", ["ftp://x", "http://user:secret@127.0.0.1:9090", "http://"])
def test_prometheus_must_be_an_address(url: str, nowhere: list[str]) -> None:
    done = run(*nowhere, "--prometheus", url)
    assert isinstance(done.exception, UsageProblem)
    assert "secret" not in str(done.exception)
