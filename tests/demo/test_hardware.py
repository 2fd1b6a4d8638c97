from __future__ import annotations

import pytest

from ranktop.demo.gpus import RankUse, simulated_gpus
from ranktop.demo.memory import simulated_cgroup, simulated_host, simulated_numa, simulated_placement
from ranktop.demo.scenarios import HostScript
from ranktop.demo.sizes import pool_sizes
from ranktop.plan import compute_plan, parse_launch

SIZES = pool_sizes()
RANKS = [RankUse(tp, 1000 + tp, SIZES.allocated_bytes, tp // 4) for tp in range(8)]
QUIET = HostScript()
REAL = compute_plan(
    parse_launch(
        "--model-path GLM-5.2-FP8 --tp-size 8 --kv-cache-dtype fp8_e4m3 --hicache-size 120 --enable-hierarchical-cache"
    ),
    version="0.5.18",
).node


def test_pools_total_and_reserve_keep_their_real_proportions() -> None:
    host = simulated_host(RANKS, QUIET, 0.0)
    assert host.total_bytes is not None
    assert host.shmem_bytes is not None
    assert host.reserve_bytes is not None
    assert REAL.allocated_bytes is not None
    assert host.shmem_bytes / host.total_bytes == pytest.approx(REAL.allocated_bytes / 1511e9, rel=1e-6)
    assert host.reserve_bytes / host.total_bytes == pytest.approx(REAL.reserve_bytes / 1511e9, rel=1e-6)


def test_available_falls_by_what_is_resident() -> None:
    empty, full = simulated_host([], QUIET, 0.0), simulated_host(RANKS, QUIET, 0.0)
    assert empty.available_bytes is not None
    assert full.available_bytes is not None
    assert empty.available_bytes - full.available_bytes == 8 * SIZES.allocated_bytes
    assert full.available_bytes > 5 * (full.reserve_bytes or 0)


def test_nodes_add_up_to_the_host() -> None:
    host = simulated_host(RANKS, QUIET, 0.0)
    nodes = simulated_numa(RANKS, QUIET, host)
    assert sum(node.total_bytes or 0 for node in nodes) == pytest.approx(host.total_bytes, abs=2)
    assert [node.shmem_bytes for node in nodes] == [4 * SIZES.allocated_bytes] * 2
    assert sum(node.free_bytes or 0 for node in nodes) == pytest.approx(host.free_bytes, abs=8)


def test_pages_lie_where_the_gpu_is_unless_they_do_not() -> None:
    near = simulated_placement(RANKS[5], 0.0)
    assert near.pages_by_node == ((1, 256),)
    far = RankUse(5, 1005, SIZES.allocated_bytes, 1, far_percent=31.25)
    assert simulated_placement(far, 0.0).pages_by_node == ((0, 80), (1, 176))
    host = simulated_host(RANKS, QUIET, 0.0)
    moved = simulated_numa([*RANKS[:5], far, *RANKS[6:]], QUIET, host)
    assert (moved[0].shmem_bytes or 0) > (moved[1].shmem_bytes or 0)


def test_pins_are_never_claimed() -> None:
    host = simulated_host(RANKS, QUIET, 0.0)
    assert host.foll_pin_acquired_pages is None
    assert all(node.foll_pin_acquired_pages is None for node in simulated_numa(RANKS, QUIET, host))


def test_every_gpu_is_named_simulated_and_adds_up() -> None:
    for gpu in simulated_gpus(8, RANKS, SIZES, 3.0, 0.7).gpus:
        assert "simulated" in (gpu.name or "")
        assert gpu.total_bytes == (gpu.used_bytes or 0) + (gpu.free_bytes or 0) + (gpu.reserved_bytes or 0)
        assert [process.pid for process in gpu.processes or ()] == [1000 + gpu.index]


def test_a_dead_ranks_gpu_is_empty_and_use_moves() -> None:
    gpus = simulated_gpus(8, RANKS[:7], SIZES, 3.0, 0.7).gpus
    assert (gpus[7].used_bytes, gpus[7].processes) == (0, ())
    assert gpus[0].used_bytes != simulated_gpus(8, RANKS, SIZES, 8.0, 0.2).gpus[0].used_bytes


def test_a_script_grows_and_presses_from_its_time_on() -> None:
    script = HostScript(growth_gb_per_minute=60.0, pressure_percent=8.0, after_seconds=10.0)
    before, after = (simulated_host(RANKS, script, seconds) for seconds in (9.0, 70.0))
    assert before.pressure is not None
    assert after.pressure is not None
    assert (before.pressure.some_avg10_percent, after.pressure.some_avg10_percent) == (0.0, 8.0)
    assert before.available_bytes is not None
    assert after.available_bytes is not None
    # 60 GB of the real host's 1511, give or take the ripple of what else is in use.
    grown = (before.available_bytes - after.available_bytes) / (after.total_bytes or 0)
    assert grown == pytest.approx(60 / 1511, rel=0.02)


def test_what_else_is_in_use_can_lie_on_one_node() -> None:
    script = HostScript(other_gb=100.0, other_on_node=1)
    first, second = simulated_numa(RANKS, script, simulated_host(RANKS, script, 0.0))
    assert (first.free_bytes or 0) > (second.free_bytes or 0)


def test_a_pod_is_its_ranks_pools_and_its_heap_below_its_limit() -> None:
    assert simulated_cgroup(RANKS, QUIET, simulated_host(RANKS, QUIET, 0.0), 0) is None
    script = HostScript(pod_limit_gb=1200.0)
    pod = simulated_cgroup(RANKS, script, simulated_host(RANKS, script, 0.0), 2)
    assert pod is not None
    assert pod.shmem_bytes == 8 * SIZES.allocated_bytes
    assert (pod.current_bytes or 0) <= (pod.limit_bytes or 0)
    assert pod.oom_kill_count == 2
