"""Short ways to a plan for tests."""

from __future__ import annotations

from typing import Any

from ranktop.plan import LaunchRequest, Plan, compute_plan, parse_launch
from ranktop.plan.gate import RESERVE_BYTES
from ranktop.plan.profiles import Profile

HICACHE = {"enable_hierarchical_cache": True, "hicache_size": 120, "kv_cache_dtype": "fp8_e4m3", "tp_size": 8}
LAYER_SPLIT = {
    "tp_size": 4,
    "kv_cache_dtype": "fp8_e4m3",
    "disaggregation_mode": "prefill",
    "disaggregation_transfer_backend": "mooncake",
    "enable_prefill_cp": True,
    "cp_strategy": "interleave",
    "enable_dsa_cache_layer_split": True,
}


def plan_of(flags: dict[str, Any], version: str = "0.5.18", **options: Any) -> Plan:
    """The plan of flags by SGLang's field names."""
    return compute_plan(LaunchRequest(flags), version=version, **{"model": "glm-5.2", **options})


def plan_of_line(line: str, **options: Any) -> Plan:
    """The plan of a launch line."""
    return compute_plan(parse_launch(line), **options)


def codes(plan: Plan) -> set[str]:
    """Codes of the plan's findings."""
    return {finding.code for finding in plan.findings}


def verdicts(plan: Plan) -> dict[str, str]:
    """rule -> verdict of every row that applies."""
    return {row.rule: row.verdict for row in plan.eligibility}


def passes_check(profile: Profile, free_bytes: int, requested_bytes: int, ranks: int) -> bool:
    """One check of one pool: `requested > available` refuses, equality passes.

    `free_bytes` is MemAvailable, from 0.5.21 the lesser of it and the cgroup's headroom.
    """
    available = free_bytes - RESERVE_BYTES
    if profile.gate_divides_by_ranks:
        available //= ranks
    return requested_bytes <= available
