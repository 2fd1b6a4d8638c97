"""The whole path: real processes with real pools, real HTTP, the plan, the verdict, in two commands."""

from __future__ import annotations

import json
import re
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.command import RANKTOP, ranktop

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("demo0")]


@contextmanager
def demo(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A headless demo that is ready, and the pid of its main process."""
    process = subprocess.Popen([str(RANKTOP), "demo", *arguments], stdout=subprocess.PIPE, text=True)
    try:
        first = _line(process, 30)
        match = re.fullmatch(r"demo: url=(\S+) pid=(\d+) log=(\S+)\n", first)
        assert match, first
        assert _line(process, 30) == "demo: ready\n"
        yield process, int(match[2])
    finally:
        process.terminate()
        process.wait(20)
        assert process.stdout is not None
        process.stdout.close()


def _line(process: subprocess.Popen[str], seconds: float) -> str:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], seconds)[0], "the demo said nothing"
    return process.stdout.readline()


def lines_of(rank: dict[str, object]) -> dict[str, dict[str, object]]:
    return {line["line"]: line for line in rank["lines"]}  # type: ignore[index, union-attr]


def test_a_healthy_node_is_seen_as_planned() -> None:
    with demo("--headless", "40") as (_, pid):
        done = ranktop("check", "--json", "--pid", str(pid), "--window", "6")
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == 1
    ranks = document["ranks"]
    assert [rank["rank"] for rank in ranks] == [f"TP{tp}" for tp in range(8)]
    for rank in ranks:
        lines = lines_of(rank)
        assert rank["pid"]
        assert rank["gpu"] is not None
        for name, planned in (("host.primary", 52_396_032), ("host.indexer", 11_202_048)):
            line = lines[name]
            assert (line["planned"], line["seen"], line["difference"]) == (planned, planned, 0)
            assert (line["status"], line["source"]) == ("ok", "measured")
        assert lines["host.pinned"]["status"] == "unknown"
        assert "demo" in str(lines["host.pinned"]["detail"])
        assert lines["hbm.total"]["source"] == "simulated"
        assert lines["numa.local"]["seen"] == 100.0
    assert [finding for finding in document["findings"] if finding["severity"] != "info"] == []
    assert document["tiers"]["device_hit"] is not None
    assert document["servers"][0]["plan_origin"] == "server_info"
    assert "--unknown-to-us" not in done.stdout


def test_a_pool_too_big_names_the_rank() -> None:
    with demo("pool-too-big", "--headless", "30") as (process, pid):
        done = ranktop("check", "--json", "--pid", str(pid), "--window", "1")
        assert done.returncode == 1
        (finding,) = [f for f in json.loads(done.stdout)["findings"] if f["code"] == "HOST-POOL-OVER"]
        assert finding["ranks"] == ["TP3"]
        assert finding["severity"] == "breach"
        text = ranktop("check", "--pid", str(pid), "--window", "1")
        assert text.returncode == 1
        assert "HOST-POOL-OVER  TP3: primary pool is 57.6 MB, planned 52.4 MB (+10.0 %)" in text.stdout
        assert process.poll() is None


def test_a_rank_that_dies_is_found_within_three_seconds() -> None:
    started = time.monotonic()
    with demo("rank-dies", "--headless", "14") as (process, pid):
        assert process.stdout is not None
        line, gone_at = "", None
        while "RANK-DEAD" not in line and time.monotonic() - started < 40:
            ready = select.select([process.stdout], [], [], 0.1)[0]
            gone_at = gone_at or (None if _has_rank(pid, "TP5") else time.monotonic())
            line = process.stdout.readline() if ready else ""
        assert re.match(r"demo: critical RANK-DEAD TP5: ", line)
        assert gone_at is not None
        assert time.monotonic() - gone_at < 3
        assert process.wait(30) == 1


def _has_rank(main_pid: int, tag: str) -> bool:
    with open(f"/proc/{main_pid}/task/{main_pid}/children") as file:
        children = file.read().split()
    for child in children:
        try:
            with open(f"/proc/{child}/cmdline", "rb") as file:
                if file.read().startswith(f"sglang::scheduler_{tag}".encode()):
                    return True
        except OSError:
            continue
    return False


def test_two_demos_do_not_disturb_each_other() -> None:
    with demo("--headless", "30") as (_, one), demo("pool-too-big", "--headless", "30") as (_, other):
        assert ranktop("check", "--pid", str(one), "--window", "1").returncode == 0
        assert ranktop("check", "--pid", str(other), "--window", "1").returncode == 1
