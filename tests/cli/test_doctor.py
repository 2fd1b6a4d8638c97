from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from collectors.nvml_worker import Worker
from ranktop.cli import doctor_checks
from ranktop.cli.doctor import doctor
from ranktop.cli.doctor_checks import all_checks, sees_all_processes, servers_seen, tried
from ranktop.sample import NoData, Processes, ServerProcess, SourceError


def test_every_lack_says_what_it_costs() -> None:
    done = CliRunner().invoke(doctor, ["--json"], standalone_mode=False)
    assert done.exception is None
    assert done.return_value == 0
    checks = {check["subject"]: check for check in json.loads(done.output)["checks"]}
    assert checks["host memory"]["answer"] == "yes"
    assert "GiB" in checks["host memory"]["detail"]
    for check in checks.values():
        assert check["answer"] in ("yes", "no", "not here")
        if check["answer"] == "no":
            assert check["costs"], check


def test_text_names_every_source() -> None:
    done = CliRunner().invoke(doctor, standalone_mode=False)
    for subject in ("processes", "host memory", "GPUs (NVML)", "kernel log", "page placement", "cgroups of the ranks"):
        assert subject in done.output


def test_a_tree_with_nothing_in_it(tmp_path: Path) -> None:
    checks = {check.subject: check for check in all_checks(str(tmp_path), str(tmp_path))}
    assert checks["processes"].answer == "no"
    assert "--proc-root" in checks["processes"].remedy


def test_one_server_is_no_servers() -> None:
    seen = Processes((ServerProcess("127.0.0.1:1", 1, 1),), ())
    assert servers_seen(seen, sees_all=True).detail == "1 SGLang server, 0 ranks"


def test_hidden_processes(tmp_path: Path) -> None:
    assert not sees_all_processes(str(tmp_path))
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "stat").write_text("1 (init) S 0\n")
    assert sees_all_processes(str(tmp_path))


class Fake:
    """A collector that does what it is told."""

    name = "fake"
    part = "gpus"
    server = None
    period_seconds = 1.0

    def __init__(self, outcome: Exception | object) -> None:
        self.outcome = outcome

    def read(self, processes: Processes | None, now: float) -> object:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.mark.parametrize(
    ("outcome", "answer", "detail"),
    [
        (NoData("nothing there"), "not here", "nothing there"),
        (SourceError("refused"), "no", "refused"),
        ((), "yes", "readable"),
        ({1: ()}, "yes", "1 of 0 ranks"),
    ],
)
def test_outcomes(outcome: object, answer: str, detail: str) -> None:
    source = doctor_checks._Source("x", Fake(outcome), "its cost", "its remedy")
    check = tried(source, Processes())
    assert (check.answer, check.detail) == (answer, detail)
    assert bool(check.costs) == (answer != "yes")


def test_a_source_that_hangs_does_not_hang_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "answer", lambda self, timeout_seconds: None)
    check = tried(doctor_checks._Source("x", Fake(()), "its cost", ""), Processes())
    assert (check.answer, check.detail) == ("no", "no answer in 10 s")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_an_ordinary_user_is_told_what_to_do() -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setresuid(65534, 65534, 65534)
        found = {check.subject: check.answer for check in all_checks("/proc", "/sys")}
        os.write(writing, json.dumps(found).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with os.fdopen(reading) as pipe:
        answers = json.load(pipe)
    assert answers["host memory"] == "yes"
    assert answers["user"] == "yes"
