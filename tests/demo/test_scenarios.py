from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from ranktop.demo.launcher import DemoNode
from ranktop.demo.scenarios import SCENARIOS
from ranktop.demo.sizes import pool_sizes
from ranktop.demo.state import resident_shmem_bytes


def _rank(node: DemoNode, tp: int) -> int | None:
    for child in psutil.Process(node.pid).children():
        if Path(f"/proc/{child.pid}/cmdline").read_bytes().rstrip(b"\0").endswith(b"scheduler_TP%d" % tp):
            return child.pid
    return None


def test_a_scenario_is_kept_under_its_own_name() -> None:
    assert all(name == scenario.name for name, scenario in SCENARIOS.items())


def test_only_faults_have_findings() -> None:
    for scenario in SCENARIOS.values():
        assert bool(scenario.findings) == (scenario.worst is not None)
    assert SCENARIOS["healthy"].findings == ()


@pytest.mark.e2e
def test_pool_too_big_maps_more_on_one_rank() -> None:
    with DemoNode("pool-too-big") as node:
        node.wait_ready(60.0)
        pids = [_rank(node, tp) for tp in (2, 3)]
        right, too_big = (resident_shmem_bytes(pid) for pid in pids if pid is not None)
    assert too_big - right == pytest.approx(pool_sizes().primary_bytes * 0.1, abs=8192)


@pytest.mark.e2e
def test_rank_dies_leaves_the_others() -> None:
    with DemoNode("rank-dies") as node:
        node.wait_ready(60.0)
        assert _rank(node, 5) is not None
        deadline = time.monotonic() + 15
        while _rank(node, 5) is not None and time.monotonic() < deadline:
            time.sleep(0.1)
        assert [tp for tp in range(8) if _rank(node, tp) is None] == [5]
        assert node.alive()
        assert " TP5] Scheduler hit an exception: Traceback" in node.log_path.read_text()
