"""`ranktop preflight` on trees of /proc and /sys, and on this very machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ranktop.cli.main import run

GIB = 1 << 30
LAUNCH = (
    "python -m sglang.launch_server --tp 8 --enable-hierarchical-cache --hicache-size 120 --kv-cache-dtype fp8_e4m3 "
    "--numa-node 0 0 0 0 1 1 1 1"
)
STATUS = (
    "Name:\t{name}\nState:\tS (sleeping)\nPPid:\t{parent}\nRssAnon:\t{anon} kB\nRssFile:\t0 kB\nRssShmem:\t{shmem} kB\n"
)


class Tree:
    """A /proc and a /sys of a host with two NUMA nodes."""

    def __init__(self, root: Path, available_gib: float = 1511, node_gib: tuple[float, ...] = (755, 755)) -> None:
        self.proc, self.sys = root / "proc", root / "sys"
        self.write(
            self.proc / "meminfo", f"MemTotal: {1583 << 20} kB\nMemAvailable: {int(available_gib * (1 << 20))} kB\n"
        )
        self.write(self.proc / "stat", "btime 1700000000\n")
        self.write(self.proc / "self/status", f"Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0-{len(node_gib) - 1}\n")
        self.write(
            self.proc / "self/limits", "Max locked memory         unlimited            unlimited            bytes\n"
        )
        for node, free in enumerate(node_gib):
            folder = self.sys / f"devices/system/node/node{node}"
            kib = int(free * (1 << 20))
            self.write(folder / "meminfo", f"Node {node} MemTotal: {kib} kB\nNode {node} MemFree: {kib} kB\n")
            self.write(folder / "cpulist", f"{node * 4}-{node * 4 + 3}\n")
            self.write(folder / "distance", " ".join("10" if node == other else "21" for other in range(len(node_gib))))
        self.write(self.sys / "devices/system/node/online", f"0-{len(node_gib) - 1}\n")

    @staticmethod
    def write(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def process(self, pid: int, parent: int, argv: str, *, anon_gib: float = 0, shmem_gib: float = 0) -> None:
        folder = self.proc / str(pid)
        self.write(folder / "cmdline", argv.replace(" ", "\0") + "\0")
        self.write(folder / "comm", argv.split()[0][:15] + "\n")
        fields = ["S", str(parent), str(parent), *["0"] * 16, str(1000 + pid), *["0"] * 30]
        self.write(folder / "stat", f"{pid} ({argv.split()[0][:15]}) {' '.join(fields)}\n")
        sizes = {"anon": int(anon_gib * (1 << 20)), "shmem": int(shmem_gib * (1 << 20))}
        self.write(folder / "status", STATUS.format(name=argv.split()[0], parent=parent, **sizes))

    def cgroup(self, pid: int, limit_gib: float, current_gib: float, cache_gib: float) -> None:
        self.write(self.proc / str(pid) / "cgroup", "0::/pod\n")
        folder = self.sys / "fs/cgroup/pod"
        self.write(folder / "cgroup.procs", "")
        self.write(folder / "memory.max", f"{int(limit_gib * GIB)}\n")
        self.write(folder / "memory.current", f"{int(current_gib * GIB)}\n")
        self.write(folder / "memory.stat", f"active_file {int(cache_gib * GIB)}\ninactive_file 0\n")

    def preflight(self, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
        roots = ("--proc-root", str(self.proc), "--sys-root", str(self.sys))
        code = run(["preflight", "--json", *roots, *words])
        captured = capsys.readouterr()
        assert captured.err == ""
        return code, json.loads(captured.out)


def codes(document: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in document["findings"]}


def test_it_fits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, found = Tree(tmp_path).preflight(capsys, "--", LAUNCH)
    assert code == 0
    assert codes(found) == {"PLAN-HALF-OF-RAM", "PLAN-SIZE-WITHOUT-INDEXER", "PLAN-METRICS-OFF"}
    assert found["fit"] is None
    assert found["machine"]["nodes"][1]["headroom_bytes"] == 755 * GIB


def test_it_does_not_fit(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, found = Tree(tmp_path, 1000, (500, 500)).preflight(capsys, "--", LAUNCH)
    assert code == 1
    assert {"PLAN-HOST-OVERCOMMIT", "PLAN-NODE-OVERCOMMIT", "PLAN-HOST-GATE"} <= codes(found)
    code, again = Tree(tmp_path / "again", 1000, (500, 500)).preflight(
        capsys, "--", LAUNCH, *found["fit"]["flag"].split()
    )
    assert found["fit"]["flag"].startswith("--hicache-size ")
    assert not codes(again) & {"PLAN-HOST-OVERCOMMIT", "PLAN-NODE-OVERCOMMIT", "PLAN-HOST-GATE"}
    assert code == 0


def test_one_node_alone_is_too_small(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, found = Tree(tmp_path, 1511, (1100, 500)).preflight(capsys, "--", LAUNCH)
    assert "PLAN-NODE-OVERCOMMIT" in codes(found)
    assert "PLAN-HOST-OVERCOMMIT" not in codes(found)


def test_the_cgroup_counts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.cgroup(os.getpid(), limit_gib=1000, current_gib=300, cache_gib=290)
    _, found = tree.preflight(capsys, "--", LAUNCH)
    assert found["machine"]["cgroup_headroom_bytes"] == 990 * GIB
    assert found["machine"]["cgroup_headroom_strict_bytes"] == 700 * GIB
    overcommit = next(finding for finding in found["findings"] if finding["code"] == "PLAN-HOST-OVERCOMMIT")
    assert overcommit["evidence"]["limit_bytes"] == 990 * GIB


def test_a_cpuset_of_one_node(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write(tree.proc / "self/status", "Mems_allowed_list:\t1\n")
    _, found = tree.preflight(capsys, "--", LAUNCH)
    assert found["machine"]["available_bytes"] == 755 * GIB


def with_server(tree: Tree) -> Tree:
    tree.process(4200, 1, "python -m sglang.launch_server --tp-size 2 --port 30000", anon_gib=2)
    for rank in range(2):
        tree.process(4210 + rank, 4200, f"sglang::scheduler_TP{rank}", anon_gib=5, shmem_gib=500)
    return tree


def test_replacing_credits_what_goes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tree = with_server(Tree(tmp_path, 500, (250, 250)))
    code, without = tree.preflight(capsys, "--", LAUNCH)
    assert code == 1
    assert {"PLAN-HOST-OVERCOMMIT", "PLAN-OVERLAP"} <= codes(without)
    code, found = tree.preflight(capsys, "--replacing", "4200", "--", LAUNCH)
    assert found["machine"]["credited_bytes"] == 2 * (500 + 5) * GIB
    assert not codes(found) & {"PLAN-HOST-OVERCOMMIT", "PLAN-NODE-OVERCOMMIT", "PLAN-HOST-GATE"}
    overlap = next(finding for finding in found["findings"] if finding["code"] == "PLAN-OVERLAP")
    assert overlap["evidence"]["unpin_seconds"] == round(1000 * GIB * 60 / 100e9, 1)
    assert code == 0


def test_other_memory_is_measured_on_running_ranks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, found = with_server(Tree(tmp_path, 1000)).preflight(capsys, "--", LAUNCH)
    finding = next(finding for finding in found["findings"] if finding["code"] == "PLAN-HOST-OVERCOMMIT")
    assert finding["evidence"]["other_bytes"] == 8 * 5 * GIB
    assert "measured" in finding["sources"]["other_bytes"]


def test_memlock(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write(tree.proc / "self/limits", "Max locked memory         8388608              8388608              bytes\n")
    assert "PLAN-MEMLOCK" not in codes(tree.preflight(capsys, "--", LAUNCH)[1])
    assert "PLAN-MEMLOCK" in codes(tree.preflight(capsys, "--", LAUNCH, "--hicache-storage-backend", "mooncake")[1])


def test_nobody_to_replace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    code = run(
        ["preflight", "--proc-root", str(tree.proc), "--sys-root", str(tree.sys), "--replacing", "7", "--", LAUNCH]
    )
    captured = capsys.readouterr()
    assert code == 2
    assert captured.err.startswith("ranktop: preflight: --replacing 7: no SGLang server")
    assert captured.err.count("\n") == 1


def test_an_empty_host_is_unknown_not_fine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "sys").mkdir()
    roots = ("--proc-root", str(tmp_path / "proc"), "--sys-root", str(tmp_path / "sys"))
    assert run(["preflight", *roots, "--", LAUNCH]) == 0
    text = capsys.readouterr().out
    assert "not read: " in text
    assert "meminfo" in text


def test_text_shows_the_nodes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    assert run(["preflight", "--proc-root", str(tree.proc), "--sys-root", str(tree.sys), "--", LAUNCH]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in (
        "available of 1,583.0 GiB 1,622.42 1,511.00",
        "pools of all ranks -1,153.55 -1,074.33",
        "node 1 headroom; 4 ranks bind to it 810.68 755.00",
        "allowed 8 CPUs; memory of node 0, 1",
    ):
        assert words in text, words


def test_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(
        ["preflight", "--json", "--other", "0", "--margin", "0", "--", "--tp", "8", "--enable-hierarchical-cache"]
    )
    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert 0 < found["machine"]["available_bytes"] <= found["machine"]["total_bytes"]
    code = run(["preflight", "--", "--tp", "8", "--enable-hierarchical-cache", "--hicache-size", "100000"])
    assert code == 1
    text = capsys.readouterr().out
    assert "This host now" in text
    assert max(map(len, text.splitlines())) <= 80
