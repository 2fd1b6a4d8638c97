"""What scenarios do to processes, series, log and state. What ranktop says of each: tests/e2e."""

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
from ranktop.demo.scenarios import SCENARIOS, Scenario, find_scenario, why_no_scenario
from ranktop.demo.sizes import demo_plan, pool_sizes
from ranktop.demo.state import resident_shmem_bytes
from ranktop.sample.demo_state import DemoState


def e2e(test: Callable[[], None]) -> Callable[[], None]:
    """Starts a node of its own."""
    return pytest.mark.e2e(pytest.mark.xdist_group("demo1")(test))


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


def _until(true: Callable[[], bool], within_seconds: float = 20.0) -> None:
    deadline = time.monotonic() + within_seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


def _has_no_room_for_an_indexer(state: DemoState) -> bool:
    """While all ranks live: the one that fails soon frees what it holds."""
    room = (state.host.available_bytes or 0) - (state.host.reserve_bytes or 0)
    return len(state.placements) == 8 and room < pool_sizes().indexer_bytes


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: scenario.name)
def test_a_scenario_is_sound(scenario: Scenario) -> None:
    assert SCENARIOS[scenario.name] is scenario
    assert scenario.worst in (None, "warn", "breach", "critical")
    assert scenario.findings or scenario.name in ("healthy", "no-l2")
    assert scenario.relaunch is None or scenario.relaunch in SCENARIOS
    plan = demo_plan(scenario.launch)
    assert plan.launch.unknown_flags == ()
    assert [entry.message for entry in plan.eligibility if entry.verdict == "rejected"] == []
    # A node of 4 GiB has room for it.
    assert (plan.node.allocated_bytes or 0) < 0.6e9


@pytest.mark.parametrize("ranks", [16, 32, 64])
def test_a_scenario_on_a_larger_host(ranks: int) -> None:
    wide, plain = find_scenario(f"pod-oom:{ranks}@0.5.23"), SCENARIOS["pod-oom"]
    assert wide is not None
    assert (wide.launch.tp_size, wide.launch.gpus, wide.launch.version) == (ranks, ranks, "0.5.23")
    plan = demo_plan(wide.launch)
    assert len(plan.ranks) == ranks
    assert [entry.message for entry in plan.eligibility if entry.verdict == "rejected"] == []
    assert plain.host.pod_limit_gb is not None
    assert (
        wide.host.total_gb / plain.host.total_gb == (wide.host.pod_limit_gb or 0) / plain.host.pod_limit_gb == ranks / 8
    )


@pytest.mark.parametrize("name", ["healthy:7", "healthy:128", "healthy:x", "cp1-fallback:16", "none:16"])
def test_no_such_larger_host(name: str) -> None:
    assert find_scenario(name) is None


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("healthy:7", "'healthy:7': no node of '7' ranks (healthy has 8; or give healthy:16, healthy:32, healthy:64)"),
        ("healthy:x@0.5.23", "no node of 'x' ranks"),
        ("cp1-fallback:16", "'cp1-fallback:16': cp1-fallback has one size, 8 ranks (give cp1-fallback alone)"),
        ("healthy:16@0.5.99", "'healthy:16@0.5.99': no SGLang '0.5.99' is played (one of 0.5.18, 0.5.23)"),
        ("helthy:16", "no scenario 'helthy' (one of healthy, pool-too-big,"),
    ],
)
def test_what_is_wrong_with_a_name_is_told(name: str, told: str) -> None:
    assert find_scenario(name) is None
    assert told in why_no_scenario(name)


@e2e
def test_pod_oom_kills_a_rank_and_the_kernel_says_so() -> None:
    with DemoNode("pod-oom", speed=10.0) as node:
        node.wait_ready(60.0)
        victim = _ranks(node)[5].pid
        _until(lambda: 5 not in _ranks(node))
        _until(lambda: _state(node).host.oom_kill_count == 1)
        assert any(f"Killed process {victim} " in line for line in _state(node).kernel_lines)
        _until(lambda: sorted(_state(node).cgroups) == sorted(rank.pid for rank in _ranks(node).values()))


@e2e
def test_leak_grows_one_heap() -> None:
    with DemoNode("leak", speed=60.0) as node:
        node.wait_ready(60.0)
        ranks = _ranks(node)
        _until(lambda: ranks[2].memory_info().rss - ranks[1].memory_info().rss > 30_000_000)


@e2e
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


@e2e
def test_layer_overlap_logs_ranges_that_overlap() -> None:
    with DemoNode("layer-overlap") as node:
        node.wait_ready(60.0)
        log = node.log_path.read_text()
        assert sorted(_ranks(node)) == list(range(8))
    logged = re.findall(r" ATTN_CP(\d) TP\1\] Layer shard plan .* global=\[(\d+),(\d+)\)", log)
    layers = [layer for _, start, end in logged for layer in range(int(start), int(end))]
    assert len(logged) == 8
    assert len(layers) - len(set(layers)) == 1


@e2e
def test_indexer_surprise_stops_one_rank_between_its_pools() -> None:
    with DemoNode("indexer-surprise") as node:
        node.wait_ready(60.0)
        ranks = _ranks(node)
        assert resident_shmem_bytes(ranks[7].pid) == pool_sizes().primary_bytes
        assert resident_shmem_bytes(ranks[6].pid) >= pool_sizes().allocated_bytes
        _until(lambda: _has_no_room_for_an_indexer(_state(node)))
        with pytest.raises(urllib.error.URLError, match="refused"):
            _series(node)
        _until(lambda: 7 not in _ranks(node))
        log = node.log_path.read_text()
    assert "ready to roll" not in log
    assert "ValueError: Not enough host memory for DSA indexer hierarchical cache." in log


@e2e
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


@e2e
def test_one_rank_alone_has_no_tag() -> None:
    with DemoNode("cp1-fallback") as node:
        node.wait_ready(60.0)
        titles = [process.cmdline()[0] for process in psutil.Process(node.pid).children()]
        assert sorted(titles) == ["sglang::detokenizer", "sglang::scheduler"]
        assert " TP0] " not in node.log_path.read_text()


def test_a_scenario_of_another_version() -> None:
    known = find_scenario("l2-phantom@0.5.23")
    assert known is not None
    assert (known.name, known.launch.version, known.findings) == ("l2-phantom@0.5.23", "0.5.23", ("L2-PHANTOM-HIT",))
    assert pool_sizes(known.launch).indexer_bytes < pool_sizes().indexer_bytes
    assert find_scenario("healthy@0.5.99") is find_scenario("helthy") is None
