"""`ranktop stack` with a stand-in for py-spy."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ranktop.cli.errors import NothingToLookAt, UsageProblem
from ranktop.cli.stack import chosen, stack
from ranktop.sample import Processes, RankProcess, RankTag


def rank(pid: int, server: str = "127.0.0.1:30000", **tag: int) -> RankProcess:
    return RankProcess(server, RankTag(**tag), pid, 1, "S")


RANKS = Processes(ranks=(rank(1, dp=0, tp=0), rank(2, dp=0, tp=1), rank(3, dp=1, tp=0), rank(4, dp=1, tp=1)))


@pytest.fixture
def py_spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of that name which prints its arguments."""
    path = tmp_path / "py-spy"
    path.write_text('#!/bin/sh\necho "$@"\n')
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(stack, arguments, standalone_mode=False)


def test_it_never_stops_the_process(py_spy: Path) -> None:
    done = run("--pid", "4242")
    assert (done.return_value, done.stdout) == (0, "dump --nonblocking --pid 4242\n")
    assert "without stopping it" in done.stderr


def test_what_py_spy_says_when_it_fails(py_spy: Path) -> None:
    py_spy.write_text('#!/bin/sh\necho "Error: Permission Denied" >&2\nexit 1\n')
    done = run("--pid", "4242")
    assert isinstance(done.exception, NothingToLookAt)
    assert "Error: Permission Denied" in str(done.exception)


def test_without_py_spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("TP0")
    assert isinstance(done.exception, NothingToLookAt)
    assert "py-spy is not installed" in str(done.exception)


@pytest.mark.parametrize("arguments", [(), ("TP0", "--pid", "4242")])
def test_a_rank_or_a_pid(arguments: tuple[str, ...], py_spy: Path) -> None:
    assert isinstance(run(*arguments).exception, UsageProblem)


def test_a_rank_by_its_whole_tag() -> None:
    assert chosen(RANKS, "dp1 tp0").pid == 3


def test_a_part_of_a_tag_that_only_one_rank_has() -> None:
    assert chosen(Processes(ranks=RANKS.ranks[:2]), "TP1").pid == 2


def test_a_part_that_several_have() -> None:
    with pytest.raises(UsageProblem, match=r"DP0 TP1 of 127\.0\.0\.1:30000 \(pid 2\), DP1 TP1"):
        chosen(RANKS, "TP1")


def test_a_rank_that_is_not_here() -> None:
    with pytest.raises(NothingToLookAt, match="there are: DP0 TP0, DP0 TP1"):
        chosen(RANKS, "TP9")


def test_ranks_of_other_servers_do_not_count() -> None:
    both = Processes(ranks=(rank(1, tp=0), rank(9, server="127.0.0.1:31000", tp=0)))
    assert chosen(both, "TP0", "127.0.0.1:31000").pid == 9


def test_no_sglang_here(py_spy: Path, tmp_path: Path) -> None:
    done = run("TP0", "--proc-root", str(tmp_path / "nowhere"))
    assert isinstance(done.exception, NothingToLookAt)
