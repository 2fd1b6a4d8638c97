"""The plan against a machine: firing, near miss and missing input of every host rule; what would fit."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ranktop.finding import Finding, exit_code
from ranktop.plan import GIB, LaunchRequest, Plan, compute_plan, parse_launch
from ranktop.plan.fit import does_not_fit, fit_now
from ranktop.plan.gate import answer
from ranktop.plan.hostrules import Allowance, assumed_allowance, host_findings
from ranktop.plan.machine import Machine, MemoryNode, asked_machine, needed_bytes, node_of_ranks

from .support import HICACHE, LAYER_SPLIT

NOTHING_ELSE = Allowance(0, 0)
REQUEST = LaunchRequest(HICACHE)
PLAN = compute_plan(REQUEST)
NEEDED = 1_153_176_121_344 + 8 * 46_904_320
"""120 GB of FP8 over 8 ranks: pools and bookkeeping."""


def found(
    machine: Machine, *, request: LaunchRequest = REQUEST, preflight: bool = False, allowance: Allowance = NOTHING_ELSE
) -> dict[str, Finding]:
    plan = compute_plan(request)
    return {finding.code: finding for finding in host_findings(plan, machine, allowance, request, preflight=preflight)}


def with_flags(**flags: Any) -> LaunchRequest:
    return LaunchRequest(HICACHE | flags)


def test_needed_bytes() -> None:
    assert needed_bytes(PLAN) == NEEDED


def test_nothing_known_nothing_said() -> None:
    assert found(Machine(), preflight=True) == {}
    unsized = LaunchRequest({"tp_size": 8, "enable_hierarchical_cache": True})
    assert found(Machine(available_bytes=1), request=unsized) == {}
    assert found(Machine(available_bytes=1), request=LaunchRequest({"tp_size": 8})) == {}


@pytest.mark.parametrize(("free", "fires"), [(NEEDED - 1, True), (NEEDED, False)])
def test_overcommit(free: int, fires: bool) -> None:
    findings = found(Machine(available_bytes=free))
    assert ("PLAN-HOST-OVERCOMMIT" in findings) == fires
    if fires:
        finding = findings["PLAN-HOST-OVERCOMMIT"]
        assert "8 ranks x 144.19 GB = 1153.55 GB" in finding.message
        assert finding.evidence["missing_bytes"] == 1
        assert exit_code([finding]) == 1


def test_overcommit_counts_the_cgroup_the_rest_and_the_credit() -> None:
    roomy = Machine(available_bytes=2 * NEEDED)
    assert "PLAN-HOST-OVERCOMMIT" in found(replace(roomy, cgroup_headroom_bytes=NEEDED - 1))
    assert "PLAN-HOST-OVERCOMMIT" not in found(replace(roomy, cgroup_headroom_bytes=NEEDED))
    exact = Machine(available_bytes=NEEDED)
    assert "PLAN-HOST-OVERCOMMIT" in found(exact, allowance=Allowance(1, 0))
    assert "PLAN-HOST-OVERCOMMIT" in found(exact, allowance=Allowance(0, 1))
    assert "PLAN-HOST-OVERCOMMIT" not in found(replace(exact, credited_bytes=1), allowance=Allowance(0, 1))


def test_usual_memory_beside_the_pools_is_assumed_and_said() -> None:
    allowance = assumed_allowance(PLAN, 0)
    assert (allowance.other_source, allowance.other_bytes) == ("assumed", 8 * (6 * GIB + 6 * GIB // 10))
    assert "(assumed)" in found(Machine(available_bytes=NEEDED), allowance=allowance)["PLAN-HOST-OVERCOMMIT"].message


@pytest.mark.parametrize(
    ("free", "severity"),
    [
        (PLAN.node.surely_fits_bytes, None),
        (PLAN.node.surely_fits_bytes - 1, "warn"),
        (PLAN.node.surely_fails_below_bytes, "warn"),
        (PLAN.node.surely_fails_below_bytes - 1, "breach"),
    ],
)
def test_gate(free: int, severity: str | None) -> None:
    finding = found(Machine(available_bytes=free)).get("PLAN-HOST-GATE")
    assert (finding.severity if finding else None) == severity


def test_gate_answers() -> None:
    fits, fails = PLAN.node.surely_fits_bytes, PLAN.node.surely_fails_below_bytes
    assert answer(PLAN.node, fits) == "passes surely"
    assert answer(PLAN.node, fits - 1) == "depends on which rank allocates first"
    assert answer(PLAN.node, fails - 1) == "fails surely"
    assert answer(replace(PLAN.node, surely_fits_bytes=None), fits) is None


def test_old_gates_do_not_see_the_cgroup() -> None:
    machine = Machine(available_bytes=4 << 40, cgroup_headroom_bytes=4 << 40, cgroup_headroom_strict_bytes=1 << 30)
    seen = {
        version: "PLAN-HOST-GATE"
        in {
            finding.code
            for finding in host_findings(compute_plan(REQUEST, version=version), machine, NOTHING_ELSE, REQUEST)
        }
        for version in ("0.5.20", "0.5.21", "0.5.22")
    }
    # Only 0.5.21 takes page cache for used memory.
    assert seen == {"0.5.20": False, "0.5.21": True, "0.5.22": False}


def test_node_overcommit() -> None:
    half = NEEDED // 2
    fits = Machine(
        available_bytes=4 * NEEDED, nodes=(MemoryNode(0, half), MemoryNode(1, half)), gpu_nodes=(0,) * 4 + (1,) * 4
    )
    assert "PLAN-NODE-OVERCOMMIT" not in found(fits)
    short = replace(fits, nodes=(MemoryNode(0, half), MemoryNode(1, half - 1)))
    finding = found(short)["PLAN-NODE-OVERCOMMIT"]
    assert finding.evidence["node"] == 1
    assert finding.ranks == ("TP4", "TP5", "TP6", "TP7")
    lopsided = replace(fits, gpu_nodes=(0,) * 5 + (1,) * 3)
    assert found(lopsided)["PLAN-NODE-OVERCOMMIT"].evidence["node"] == 0
    assert "PLAN-NODE-OVERCOMMIT" not in found(replace(short, gpu_nodes=None))


def test_numa_node_flag_is_indexed_by_gpu() -> None:
    request = with_flags(numa_node=("1",) * 8, base_gpu_id=0)
    machine = Machine(available_bytes=4 * NEEDED, nodes=(MemoryNode(0, NEEDED), MemoryNode(1, NEEDED - 1)))
    assert found(machine, request=request)["PLAN-NODE-OVERCOMMIT"].evidence["node"] == 1
    assert node_of_ranks(compute_plan(with_flags(numa_node=("0", "1", "x"))), machine) == (
        0,
        1,
        None,
        None,
        None,
        None,
        None,
        None,
    )


def test_asked_machine() -> None:
    machine = asked_machine(1511, 2, 8)
    assert machine.available_bytes == 1511 * GIB
    assert machine.gpu_nodes == (0, 0, 0, 0, 1, 1, 1, 1)
    assert [node.headroom_bytes for node in machine.nodes] == [1511 * GIB // 2] * 2
    assert asked_machine(None, None, 8) == Machine()


def test_half_of_ram_only_in_preflight() -> None:
    machine = Machine(available_bytes=4 * NEEDED, total_bytes=2 * NEEDED - 1)
    assert "PLAN-HALF-OF-RAM" in found(machine, preflight=True)
    assert "PLAN-HALF-OF-RAM" not in found(machine)
    assert "PLAN-HALF-OF-RAM" not in found(replace(machine, total_bytes=2 * NEEDED), preflight=True)


def test_overlap() -> None:
    machine = Machine(available_bytes=NEEDED + 10, live_pool_bytes=200 * 10**9)
    assert "PLAN-OVERLAP" not in found(machine)
    finding = found(replace(machine, available_bytes=NEEDED - 1, credited_bytes=200 * 10**9))["PLAN-OVERLAP"]
    assert finding.evidence["unpin_seconds"] == 120.0
    assert "PLAN-OVERLAP" not in found(replace(machine, available_bytes=NEEDED - 1, live_pool_bytes=0))


def test_hugepages() -> None:
    reserved = Machine(available_bytes=NEEDED - 1, hugetlb_free_bytes=GIB)
    finding = found(reserved)["PLAN-HUGEPAGES"]
    assert set(finding.evidence) == {"available_bytes", "hugetlb_free_bytes", "needed_bytes"}
    assert "PLAN-HUGEPAGES" not in found(replace(reserved, hugetlb_free_bytes=0))
    assert "PLAN-HUGEPAGES" not in found(replace(reserved, available_bytes=NEEDED))
    asked = parse_launch(
        "SGLANG_HUGEPAGE_SIZE=1GB python -m sglang.launch_server --tp 8 --enable-hierarchical-cache --hicache-size 120 "
        "--kv-cache-dtype fp8_e4m3"
    )
    rounded = needed_bytes(PLAN, GIB)
    assert rounded > NEEDED
    enough = Machine(available_bytes=PLAN.node.surely_fits_bytes, hugetlb_free_bytes=rounded)
    assert "PLAN-HUGEPAGES" not in found(enough, request=asked)
    # The pools come out of the reservation: only the rest needs ordinary memory.
    little = replace(enough, available_bytes=GIB)
    assert "PLAN-HOST-OVERCOMMIT" not in found(little, request=asked)
    assert "PLAN-HOST-OVERCOMMIT" in found(little)
    assert "PLAN-HUGEPAGES" in found(replace(enough, hugetlb_free_bytes=rounded - 1), request=asked)
    assert "PLAN-HUGEPAGES" in found(replace(enough, available_bytes=rounded // 2), request=asked)
    nodes = (MemoryNode(0, NEEDED, rounded // 2), MemoryNode(1, NEEDED, rounded // 2 - 1))
    short = replace(enough, nodes=nodes, gpu_nodes=(0,) * 4 + (1,) * 4)
    assert found(short, request=asked)["PLAN-HUGEPAGES"].evidence["nodes"] == [1]


def test_memlock_is_for_rdma_only() -> None:
    limited = Machine(memlock_bytes=8 << 20)
    prefill = LaunchRequest(LAYER_SPLIT)
    assert "PLAN-MEMLOCK" in found(limited, request=prefill)
    assert "PLAN-MEMLOCK" not in found(Machine(), request=prefill)
    assert "PLAN-MEMLOCK" not in found(limited)
    assert "PLAN-MEMLOCK" in found(limited, request=with_flags(hicache_storage_backend="mooncake"))
    tcp = LaunchRequest(LAYER_SPLIT | {"disaggregation_transfer_backend": "mooncake_tcp"})
    assert "PLAN-MEMLOCK" not in found(limited, request=tcp)


def test_first_pilot() -> None:
    machine = Machine()
    together = with_flags(hicache_storage_backend="file", speculative_algorithm="EAGLE")
    assert found(machine, request=together, preflight=True)["PLAN-NOT-FIRST-PILOT"].evidence["together"] == [
        "L3 storage",
        "MTP",
    ]
    assert "PLAN-NOT-FIRST-PILOT" not in found(machine, preflight=True)
    assert "PLAN-NOT-FIRST-PILOT" not in found(machine, request=together)


def fit(machine: Machine, request: LaunchRequest = REQUEST, **options: Any) -> Any:
    def compute(changed: LaunchRequest) -> Plan:
        return compute_plan(changed, **options)

    return fit_now(compute(request), machine, NOTHING_ELSE, request, compute)


def test_fit_is_the_largest() -> None:
    machine = asked_machine(900, 2, 8)
    answer = fit(machine)
    assert answer.flag == f"--hicache-size {answer.hicache_size_gb:g}"
    for size, fits in ((answer.hicache_size_gb, True), (answer.hicache_size_gb + 1, False)):
        request = with_flags(hicache_size=size)
        assert does_not_fit(compute_plan(request), machine, NOTHING_ELSE, request) is not fits
    after = compute_plan(with_flags(hicache_size=answer.hicache_size_gb))
    assert answer.freed_bytes == NEEDED - needed_bytes(after)
    assert answer.lost_tokens == PLAN.ranks[0].host.tokens - after.ranks[0].host.tokens


def test_fit_is_silent_when_it_fits() -> None:
    assert fit(asked_machine(1511, 2, 8)) is None
    assert fit(Machine()) is None


def test_nothing_fits() -> None:
    assert fit(asked_machine(11, None, 8)).flag is None


def test_what_fits_must_hold_more_than_l1() -> None:
    machine = asked_machine(900, 2, 8)
    size = fit(machine).hicache_size_gb
    tokens = compute_plan(with_flags(hicache_size=size)).ranks[0].host.tokens
    assert fit(machine, device_tokens=tokens - 1).flag is not None
    assert fit(machine, device_tokens=tokens).flag is None


def test_fit_of_a_ratio_names_a_size() -> None:
    request = LaunchRequest(
        {"tp_size": 8, "enable_hierarchical_cache": True, "hicache_ratio": 10.0, "kv_cache_dtype": "fp8_e4m3"}
    )
    answer = fit(asked_machine(400, 2, 8), request, device_tokens=300_000)
    assert answer.flag.startswith("--hicache-size ")


def test_small_sizes_fit_in_hundredths() -> None:
    answer = fit(Machine(available_bytes=11 * GIB), with_flags(hicache_size=1.5))
    assert answer.hicache_size_gb == round(answer.hicache_size_gb, 2) < 1
