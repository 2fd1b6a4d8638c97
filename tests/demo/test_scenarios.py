"""What each scenario does to processes, series, log and state. That ranktop sees it is tested with the rules."""

from __future__ import annotations

import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from ranktop.demo.launcher import DemoNode
from ranktop.demo.scenarios import SCENARIOS, Scenario
from ranktop.demo.sizes import demo_plan, pool_sizes
from ranktop.demo.state import resident_shmem_bytes
from ranktop.sample.demo_state import DemoState


def _ranks(node: DemoNode) -> dict[int, psutil.Process]:
    found: dict[int, psutil.Process] = {}
    for child in psutil.Process(node.pid).children():
        title = Path(f"/proc/{child.pid}/cmdline").read_bytes().rstrip(b"\0")
        if match := re.search(rb"^sglang::scheduler_.*TP(\d+)$", title):
            found[int(match[1])] = child
    return found


def _state(node: DemoNode) -> DemoState:
    return msgspec.json.decode(node.state_path.read_bytes(), type=DemoState)


def _series(node: DemoNode) -> dict[str, float]:
    with urllib.request.urlopen(node.url + "/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def _total(series: dict[str, float], pattern: str) -> float:
    return sum(value for name, value in series.items() if re.match(pattern, name))


def _until(true: Callable[[], bool], within_seconds: float = 20.0) -> None:
    deadline = time.monotonic() + within_seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: scenario.name)
def test_a_scenario_is_sound(scenario: Scenario) -> None:
    assert SCENARIOS[scenario.name] is scenario
    assert scenario.worst in (None, "warn", "breach", "critical")
    assert scenario.findings or scenario.name == "healthy"
    plan = demo_plan(scenario.launch)
    assert plan.launch.unknown_flags == ()
    assert [entry.message for entry in plan.eligibility if entry.verdict == "rejected"] == []
    # A node of 4 GiB has room for it.
    assert (plan.node.allocated_bytes or 0) < 0.6e9


@pytest.mark.e2e
def test_pool_too_big_maps_more_on_one_rank() -> None:
    with DemoNode("pool-too-big") as node:
        node.wait_ready(60.0)
        ranks = _ranks(node)
        right, too_big = (resident_shmem_bytes(ranks[tp].pid) for tp in (2, 3))
    assert too_big - right == pytest.approx(pool_sizes().primary_bytes * 0.1, abs=8192)


@pytest.mark.e2e
def test_rank_dies_leaves_the_others() -> None:
    with DemoNode("rank-dies") as node:
        node.wait_ready(60.0)
        assert sorted(_ranks(node)) == list(range(8))
        _until(lambda: 5 not in _ranks(node))
        assert sorted(_ranks(node)) == [0, 1, 2, 3, 4, 6, 7]
        assert node.alive()
        assert " TP5] Scheduler hit an exception: Traceback" in node.log_path.read_text()


@pytest.mark.e2e
def test_pod_oom_kills_a_rank_and_the_kernel_says_so() -> None:
    with DemoNode("pod-oom", speed=10.0) as node:
        node.wait_ready(60.0)
        victim = _ranks(node)[5].pid
        _until(lambda: 5 not in _ranks(node))
        _until(lambda: _state(node).host.oom_kill_count == 1)
        assert any(f"Killed process {victim} " in line for line in _state(node).kernel_lines)
        _until(lambda: sorted(_state(node).cgroups) == sorted(rank.pid for rank in _ranks(node).values()))


@pytest.mark.e2e
def test_leak_grows_one_heap() -> None:
    with DemoNode("leak", speed=60.0) as node:
        node.wait_ready(60.0)
        ranks = _ranks(node)
        _until(lambda: ranks[2].memory_info().rss - ranks[1].memory_info().rss > 30_000_000)


@pytest.mark.e2e
def test_a_hung_server_answers_with_work_at_its_door_and_nothing_moving() -> None:
    with DemoNode("server-hung", speed=10.0) as node:
        node.wait_ready(60.0)
        door = 'sglang:http_requests_active{endpoint="/generate",method="POST"}'
        _until(lambda: _series(node).get(door, 0.0) > 20)
        before, logged = _series(node), node.log_path.read_text()
        time.sleep(2.5)
        after = _series(node)
        assert after[door] > before[door]
        assert {name for name in before if before[name] != after[name] and "fwd_occupancy" not in name} == {door}
        assert node.log_path.read_text() == logged
        assert all(gpu.utilization_percent == 0 for gpu in _state(node).gpus.gpus)


@pytest.mark.e2e
def test_metrics_rank0_hides_gauges_and_keeps_constants() -> None:
    with DemoNode("metrics-rank0") as node:
        node.wait_ready(60.0)
        _until(lambda: any("num_running_reqs" in name for name in _series(node)))
        names = list(_series(node))
    for family, ranks in (("num_running_reqs", 1), ("max_total_num_tokens", 8)):
        assert sum(name.startswith(f"sglang:{family}{{") for name in names) == ranks


@pytest.mark.e2e
def test_phantom_hits_are_counted_and_not_read() -> None:
    with DemoNode("l2-phantom", speed=20.0) as node:
        node.wait_ready(60.0)
        _until(lambda: _total(_series(node), '.*prefill_effective.*mode="host_hit"') > 0)
        assert _total(_series(node), "sglang:load_back") == 0


@pytest.mark.e2e
def test_layer_overlap_logs_ranges_that_overlap() -> None:
    with DemoNode("layer-overlap") as node:
        node.wait_ready(60.0)
        log = node.log_path.read_text()
        assert sorted(_ranks(node)) == list(range(8))
    logged = re.findall(r" ATTN_CP(\d) TP\1\] Layer shard plan .* global=\[(\d+),(\d+)\)", log)
    layers = [layer for _, start, end in logged for layer in range(int(start), int(end))]
    assert len(logged) == 8
    assert len(layers) - len(set(layers)) == 1


@pytest.mark.e2e
def test_indexer_surprise_stops_one_rank_between_its_pools() -> None:
    with DemoNode("indexer-surprise") as node:
        node.wait_ready(60.0)
        ranks = _ranks(node)
        assert resident_shmem_bytes(ranks[7].pid) == pool_sizes().primary_bytes
        assert resident_shmem_bytes(ranks[6].pid) >= pool_sizes().allocated_bytes
        _until(lambda: len(_state(node).placements) == 8)
        host = _state(node).host
        assert (host.available_bytes or 0) - (host.reserve_bytes or 0) < pool_sizes().indexer_bytes
        with pytest.raises(urllib.error.URLError, match="refused"):
            _series(node)
        _until(lambda: 7 not in _ranks(node))
        log = node.log_path.read_text()
    assert "ready to roll" not in log
    assert "ValueError: Not enough host memory for DSA indexer hierarchical cache." in log


@pytest.mark.e2e
def test_an_orphan_has_no_parent_holds_a_gpu_and_ends_with_the_node() -> None:
    with DemoNode("orphan") as node:
        node.wait_ready(60.0)
        _until(lambda: len(_state(node).gpus.gpus[2].processes or ()) == 2)
        known = {rank.pid for rank in _ranks(node).values()}
        pids = {process.pid for gpu in _state(node).gpus.gpus for process in gpu.processes or ()}
        (orphan,) = (psutil.Process(pid) for pid in pids - known)
        assert orphan.ppid() != node.pid
        assert orphan.cmdline()[0] == "sglang::scheduler_TP2"
    orphan.wait(5)


@pytest.mark.e2e
def test_one_rank_alone_has_no_tag() -> None:
    with DemoNode("cp1-fallback") as node:
        node.wait_ready(60.0)
        titles = [process.cmdline()[0] for process in psutil.Process(node.pid).children()]
        assert sorted(titles) == ["sglang::detokenizer", "sglang::scheduler"]
        assert " TP0] " not in node.log_path.read_text()


@pytest.mark.e2e
def test_launch_changed_has_two_launches_in_its_log() -> None:
    with DemoNode("launch-changed") as node:
        node.wait_ready(60.0)
        sizes = re.findall(r"server_args=.*hicache_size=([\d.]+)", node.log_path.read_text())
    assert sizes == ["0.02", "0.05"]
