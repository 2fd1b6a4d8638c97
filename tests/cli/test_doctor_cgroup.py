"""A tree of /proc and /sys in which ranks and ranktop share a cgroup, or do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranktop.cli.doctor_cgroup import dies_with_the_ranks
from ranktop.cli.doctor_checks import Check
from ranktop.sample import RankProcess, RankTag

POD = "/kubepods.slice/pod1/server"


class Node:
    """Two ranks in a container's cgroup; `self` and recorders are put where a test wants them."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.sys = folder / "proc", folder / "sys"
        self.group("/", None)
        self.group(POD, "1")
        for pid in (41, 42):
            self.process(str(pid), POD, "sglang::scheduler_TP0")
        (self.proc / "self").mkdir()
        (self.proc / "self" / "mountinfo").write_text("30 1 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")

    def group(self, path: str, kills_whole: str | None) -> None:
        folder = self.sys / "fs" / "cgroup" / path.strip("/")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.procs").write_text("")
        if kills_whole is not None:
            (folder / "memory.oom.group").write_text(f"{kills_whole}\n")

    def process(self, pid: str, group: str, *words: str) -> None:
        (self.proc / pid).mkdir(parents=True, exist_ok=True)
        (self.proc / pid / "cgroup").write_text(f"0::{group}\n")
        (self.proc / pid / "cmdline").write_text("\0".join(words) + "\0")

    def asked(self, ranks: tuple[int, ...] = (41, 42)) -> Check:
        found = [RankProcess("a:1", RankTag(tp=number), pid, 7, "S") for number, pid in enumerate(ranks)]
        return dies_with_the_ranks(str(self.proc), str(self.sys), found)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_shell_in_the_pod_dies_with_it(node: Node) -> None:
    node.process("self", POD)
    told = node.asked()
    assert told.answer == "no"
    assert "takes ranktop too" in told.detail
    assert POD in told.detail
    assert "on the host" in told.remedy
    assert told.costs


def test_a_cgroup_of_its_own_below_one_that_is_killed_whole(node: Node) -> None:
    node.group(f"{POD}/watcher", "0")
    node.process("self", f"{POD}/watcher")
    assert node.asked().answer == "no"


def test_elsewhere_it_lives_on(node: Node) -> None:
    node.group("/system.slice", "1")
    node.process("self", "/system.slice")
    told = node.asked()
    assert (told.answer, told.detail) == ("yes", "none takes ranktop with the ranks")


def test_in_the_same_cgroup_of_which_one_process_is_killed(node: Node) -> None:
    node.group(POD, "0")
    node.process("self", POD)
    told = node.asked()
    assert told.answer == "yes"
    assert "takes one process" in told.detail


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("/opt/venv/bin/python3", "/opt/venv/bin/ranktop", "record", "-o", "a.rtop"), "no"),
        (("ranktop", "watch"), "no"),
        (("tail", "-f", "ranktop"), "yes"),
        (("vim", "/etc/ranktop.toml"), "yes"),
    ],
)
def test_a_recorder_elsewhere_is_looked_for(node: Node, words: tuple[str, ...], answer: str) -> None:
    node.group("/system.slice", "0")
    node.process("self", "/system.slice")
    node.process("77", POD, *words)
    told = node.asked()
    assert told.answer == answer
    assert ("pid 77" in told.detail) == (answer == "no")


def test_what_cannot_be_seen_is_not_said(node: Node) -> None:
    node.process("self", "/not/mounted/here")
    assert node.asked().answer == "not here"
    assert node.asked(ranks=()).answer == "not here"
    assert node.asked(ranks=(999,)).answer == "not here"
