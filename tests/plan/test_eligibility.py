"""Conjunctions of flags: the rows of both audits' tables and of the facts, release by release."""

from __future__ import annotations

from typing import Any

import pytest

from ranktop.plan import PROFILES, compute_plan, parse_launch
from ranktop.plan.hicache_rules import HICACHE_RULES
from ranktop.plan.layersplit_rules import LAYER_SPLIT_RULES
from ranktop.plan.parallel_rules import PARALLEL_RULES

from .support import HICACHE, LAYER_SPLIT, codes, plan_of, verdicts

L3 = HICACHE | {"hicache_storage_backend": "file"}
WITH_L2 = LAYER_SPLIT | {"enable_hierarchical_cache": True, "hicache_size": 64}
SHARDING = HICACHE | {"enable_kv_cache_sharding": True}
BUFFER = L3 | {"hicache_host_memory_mode": "buffer_only"}
DCP = HICACHE | {"dcp_size": 2}
OFFLOAD = {"disaggregation_decode_enable_offload_kvcache": True}
CP = {"enable_prefill_cp": True, "cp_strategy": "interleave", "disaggregation_mode": "prefill", "tp_size": 8}


def each(first: int, last: int) -> list[str]:
    return [f"0.5.{patch}" for patch in range(first, last + 1)]


ALL = each(16, 23)

# rule, flags, verdict, versions in which it applies, near miss: a change that keeps it silent
ROWS: list[tuple[str, dict[str, Any], str, list[str], dict[str, Any]]] = [
    ("LayerSplit on a unified worker", LAYER_SPLIT | {"disaggregation_mode": "null"}, "rejected", ALL, LAYER_SPLIT),
    (
        "LayerSplit on a decode worker",
        LAYER_SPLIT | {"disaggregation_mode": "decode", "enable_prefill_cp": False},
        "rejected",
        ALL,
        LAYER_SPLIT,
    ),
    (
        "LayerSplit without interleaved prefill CP",
        LAYER_SPLIT | {"cp_strategy": "zigzag"},
        "rejected",
        ALL,
        LAYER_SPLIT,
    ),
    (
        "LayerSplit without Mooncake",
        LAYER_SPLIT | {"disaggregation_transfer_backend": "nixl"},
        "rejected",
        ALL,
        LAYER_SPLIT | {"disaggregation_transfer_backend": "mooncake_tcp"},
    ),
    ("LayerSplit with pipeline parallelism", LAYER_SPLIT | {"pp_size": 2}, "rejected", ALL, LAYER_SPLIT),
    (
        "LayerSplit with KV cache sharding",
        LAYER_SPLIT | {"enable_kv_cache_sharding": True},
        "rejected",
        each(22, 23),
        LAYER_SPLIT,
    ),
    ("LayerSplit at CP1", LAYER_SPLIT | {"tp_size": 1}, "ignored", ALL, LAYER_SPLIT),
    ("LayerSplit on a PD prefill worker", LAYER_SPLIT, "accepted", ALL, LAYER_SPLIT | {"tp_size": 1}),
    ("LayerSplit with MTP", LAYER_SPLIT | {"speculative_algorithm": "EAGLE"}, "accepted", ALL, LAYER_SPLIT),
    (
        "LayerSplit + HiCache, layout other than layer_first",
        WITH_L2,
        "accepted",
        ALL,
        WITH_L2 | {"hicache_mem_layout": "layer_first"},
    ),
    (
        "LayerSplit + HiCache + Mooncake storage",
        WITH_L2 | {"hicache_storage_backend": "mooncake", "hicache_mem_layout": "layer_first"},
        "accepted",
        ALL,
        WITH_L2 | {"hicache_mem_layout": "layer_first"},
    ),
    ("prefill CP without a strategy", CP | {"cp_strategy": None}, "rejected", ALL, CP),
    ("prefill CP on a decode worker", CP | {"disaggregation_mode": "decode"}, "rejected", ALL, CP),
    ("interleaved prefill CP with DP", CP | {"dp_size": 2}, "rejected", each(16, 21), CP),
    ("interleaved prefill CP with more than 8 TP ranks", CP | {"tp_size": 16}, "rejected", ALL, CP),
    ("DCP with prefill CP", CP | {"dcp_size": 2}, "rejected", each(23, 23), CP),
    ("DSA + DCP + HiCache or HiSparse", DCP, "rejected", each(22, 23), HICACHE),
    ("DSA + DCP + PD", {"dcp_size": 2, "disaggregation_mode": "decode"}, "rejected", each(22, 23), {"dcp_size": 2}),
    (
        "DSA + DCP + EAGLE top-k",
        {"dcp_size": 2, "speculative_eagle_topk": 4},
        "rejected",
        each(22, 23),
        {"dcp_size": 2},
    ),
    ("DSA + DCP + HiCache", DCP, "untested", each(16, 21), HICACHE),
    ("DCP + HiCache + L3", L3 | {"dcp_size": 2}, "rejected", each(17, 22), L3),
    ("DCP + HiCache + L3, buffer_only", BUFFER | {"dcp_size": 2}, "rejected", each(23, 23), L3 | {"dcp_size": 2}),
    ("DCP + HiCache + speculation", DCP | {"speculative_algorithm": "EAGLE"}, "rejected", each(17, 23), DCP),
    ("DCP + HiCache + LMCache", DCP | {"enable_lmcache": True}, "rejected", each(17, 23), DCP),
    ("DCP + HiCache + HiSparse", DCP | {"enable_hisparse": True}, "rejected", each(17, 23), DCP),
    ("DCP on a PD decode worker", DCP | {"disaggregation_mode": "decode"}, "rejected", each(17, 20), DCP),
    (
        "HiCache without radix cache",
        HICACHE | {"disable_radix_cache": True},
        "rejected",
        ALL,
        {"disable_radix_cache": True},
    ),
    ("HiCache + HiSparse", HICACHE | {"enable_hisparse": True}, "rejected", ALL, {"enable_hisparse": True}),
    ("HiCache + unified memory", HICACHE | {"enable_unified_memory": True}, "rejected", each(16, 20), HICACHE),
    (
        "HiCache + external linker",
        HICACHE | {"enable_unified_cache_external_linker": True},
        "rejected",
        each(20, 23),
        HICACHE,
    ),
    ("HiCache + KV cache sharding", SHARDING, "rejected", each(22, 22), HICACHE),
    ("HiCache + KV cache sharding + L3", SHARDING | L3, "rejected", each(23, 23), SHARDING),
    (
        "HiCache + KV cache sharding, DSA",
        SHARDING | {"hicache_io_backend": "direct"},
        "rejected",
        each(23, 23),
        SHARDING,
    ),
    ("two-batch overlap + index sharing", {"enable_two_batch_overlap": True}, "rejected", ALL, {}),
    (
        "decode offload off the decode role",
        OFFLOAD | {"hicache_storage_backend": "file"},
        "rejected",
        ALL,
        OFFLOAD | {"hicache_storage_backend": "file", "disaggregation_mode": "decode"},
    ),
    (
        "decode offload without L3",
        OFFLOAD | {"disaggregation_mode": "decode"},
        "rejected",
        ALL,
        OFFLOAD | {"hicache_storage_backend": "file", "disaggregation_mode": "decode"},
    ),
    ("buffer_only without L3", HICACHE | {"hicache_host_memory_mode": "buffer_only"}, "rejected", each(19, 23), BUFFER),
    ("buffer_only on a decode worker", BUFFER | {"disaggregation_mode": "decode"}, "rejected", each(19, 23), BUFFER),
    ("buffer_only + write_back", BUFFER | {"hicache_write_policy": "write_back"}, "rejected", each(19, 21), BUFFER),
    ("FP4 KV cache", {"kv_cache_dtype": "fp4_e2m1"}, "rejected", each(21, 23), {}),
    ("MTP + HiCache, draft indexer", HICACHE | {"speculative_algorithm": "EAGLE"}, "untested", each(16, 17), HICACHE),
    ("MTP + HiCache", HICACHE | {"speculative_algorithm": "EAGLE"}, "accepted", each(18, 23), HICACHE),
    (
        "speculation with a draft model of its own + HiCache",
        HICACHE | {"speculative_algorithm": "EAGLE3"},
        "untested",
        ALL,
        HICACHE | {"speculative_algorithm": "NGRAM"},
    ),
    (
        "speculation + pipeline parallelism",
        {"pp_size": 2, "speculative_algorithm": "EAGLE"},
        "untested",
        each(21, 23),
        {"pp_size": 2},
    ),
    (
        "pipeline parallelism with speculation",
        {"pp_size": 2, "speculative_algorithm": "EAGLE3"},
        "rejected",
        ALL,
        {"pp_size": 2},
    ),
    (
        "pipeline parallelism with speculation",
        {"pp_size": 2, "speculative_algorithm": "EAGLE"},
        "rejected",
        each(16, 20),
        {"speculative_algorithm": "EAGLE"},
    ),
    (
        "pipeline parallelism with speculation",
        {"pp_size": 2, "speculative_algorithm": "DSPARK"},
        "rejected",
        ALL,
        {"speculative_algorithm": "DSPARK"},
    ),
    (
        "pipeline parallelism with speculation",
        {"pp_size": 2, "speculative_algorithm": "DSPARK", "disaggregation_mode": "prefill"},
        "rejected",
        each(16, 20),
        {"pp_size": 2},
    ),
    (
        "replicas over several nodes",
        {"tp_size": 8, "dp_size": 2, "nnodes": 2},
        "rejected",
        ALL,
        {"tp_size": 8, "dp_size": 2, "nnodes": 2, "enable_dp_attention": True},
    ),
    ("L1 + L2, radix on, MTP off", HICACHE, "accepted", ALL, L3),
    ("L1 + L2 + L3, DCP1", L3, "accepted", ALL, HICACHE),
    (
        "optimistic prefill + HiCache",
        HICACHE
        | {"disaggregation_mode": "prefill", "optimistic_prefill_attempts": 2, "hicache_write_policy": "write_back"},
        "accepted",
        each(17, 23),
        HICACHE,
    ),
]


@pytest.mark.parametrize(("rule", "flags", "verdict", "versions", "near_miss"), ROWS, ids=[row[0] for row in ROWS])
def test_row(rule: str, flags: dict[str, Any], verdict: str, versions: list[str], near_miss: dict[str, Any]) -> None:
    found = [version for version in PROFILES if verdicts(plan_of(flags, version)).get(rule) == verdict]
    assert found == versions
    assert all(rule not in verdicts(plan_of(near_miss, version)) for version in versions)


PLAIN_MLA = HICACHE | {"dcp_size": 2, "page_size": 64}


def test_plain_mla_with_dcp() -> None:
    def rules(flags: dict[str, Any], version: str, model: str = "deepseek-v3") -> dict[str, str]:
        return verdicts(plan_of(flags, version, model=model))

    assert rules(PLAIN_MLA, "0.5.16")["DCP + HiCache"] == "untested"
    assert rules(PLAIN_MLA, "0.5.17")["DCP + HiCache, L1 and L2 only"] == "accepted"
    storage = PLAIN_MLA | {"hicache_storage_backend": "file"}
    assert rules(storage, "0.5.22")["DCP + HiCache + L3"] == "rejected"
    assert rules(storage, "0.5.23")["DCP + HiCache + L3"] == "accepted"
    assert "DCP + HiCache without MLA" in rules(PLAIN_MLA, "0.5.18", "qwen3-32b")
    speculative = PLAIN_MLA | {"speculative_algorithm": "DSPARK"}
    assert "DCP + HiCache + speculation" in rules(speculative, "0.5.17")
    assert "DCP + HiCache + speculation" not in rules(speculative, "0.5.18")


def test_lmcache_and_unified_memory_changed_over_time() -> None:
    def verdict(version: str, flag: str, rule: str) -> str | None:
        return verdicts(plan_of(HICACHE | {flag: True}, version)).get(rule)

    lmcache = [verdict(version, "enable_lmcache", "HiCache + LMCache") for version in PROFILES]
    assert lmcache == ["ignored"] * 5 + ["rejected"] * 3
    memory = [verdict(version, "enable_unified_memory", "HiCache + unified memory") for version in PROFILES]
    assert memory == ["rejected"] * 5 + ["untested"] * 3


def test_layer_split_without_dsa() -> None:
    plan = plan_of(LAYER_SPLIT, model="deepseek-v3")
    assert verdicts(plan)["LayerSplit without DSA"] == "rejected"
    assert plan.layer_split.active is False
    assert "only supported for DSA" in plan.layer_split.reasons[0]


# The LayerSplit audit's decision table.
DECISIONS: list[tuple[dict[str, Any], str, bool]] = [
    ({}, "", True),
    ({"disaggregation_mode": "null"}, "PLAN-REJECTED", False),
    ({"disaggregation_mode": "decode", "enable_prefill_cp": False}, "PLAN-REJECTED", False),
    ({"cp_strategy": "zigzag"}, "PLAN-REJECTED", False),
    ({"disaggregation_transfer_backend": "nixl"}, "PLAN-REJECTED", False),
    ({"disaggregation_transfer_backend": "mori"}, "PLAN-REJECTED", False),
    ({"pp_size": 2}, "PLAN-REJECTED", False),
    ({"tp_size": 1}, "PLAN-SILENT-NOOP", False),
]


@pytest.mark.parametrize(("change", "code", "active"), DECISIONS)
def test_layer_split_decisions(change: dict[str, Any], code: str, active: bool) -> None:
    plan = plan_of(LAYER_SPLIT | change)
    assert plan.layer_split.active is active
    assert (code in codes(plan)) if code else not codes(plan) & {"PLAN-REJECTED", "PLAN-SILENT-NOOP"}
    assert bool(plan.layer_split.reasons) is not active


REWRITES: list[tuple[dict[str, Any], str, Any, list[str]]] = [
    ({"hicache_mem_layout": "page_first_direct"}, "hicache_io_backend", "direct", ALL),
    ({"hicache_io_backend": "direct"}, "hicache_mem_layout", "page_first_direct", ALL),
    (
        {"hicache_storage_backend": "mooncake", "hicache_mem_layout": "layer_first"},
        "hicache_mem_layout",
        "page_first",
        ALL,
    ),
    (
        {
            "hicache_storage_backend": "mooncake",
            "hicache_mem_layout": "layer_first",
            "hicache_io_backend": "direct",
        },
        "hicache_mem_layout",
        "page_first_direct",
        ALL,
    ),
    (
        {"hicache_storage_backend": "npu_memcache", "hicache_mem_layout": "layer_first"},
        "hicache_mem_layout",
        "page_first",
        each(20, 23),
    ),
    ({"page_size": 1}, "page_size", 64, ALL),
    (
        {"hicache_host_memory_mode": "buffer_only", "hicache_write_policy": "write_back"},
        "hicache_write_policy",
        "write_through",
        each(22, 23),
    ),
    (
        {"enable_unified_memory": True, "hicache_mem_layout": "page_first_direct"},
        "hicache_mem_layout",
        "page_first",
        each(23, 23),
    ),
    (
        {"disaggregation_mode": "decode", "disaggregation_decode_host_receive_threshold": 0.5},
        "hicache_mem_layout",
        "layer_first",
        each(21, 23),
    ),
    (
        {"disaggregation_mode": "decode", "disaggregation_decode_host_receive_threshold": 1.0},
        "hicache_mem_layout",
        "layer_first",
        each(21, 21),
    ),
    (
        {"disaggregation_transfer_backend": "mooncake_tcp"},
        "disaggregation_transfer_backend",
        "mooncake",
        ALL,
    ),
    (
        {"disaggregation_mode": "prefill", "optimistic_prefill_attempts": 2},
        "optimistic_prefill_attempts",
        0,
        each(16, 20),
    ),
    (
        {
            "disaggregation_mode": "prefill",
            "optimistic_prefill_attempts": 2,
            "hicache_storage_backend": "file",
            "hicache_write_policy": "write_back",
        },
        "optimistic_prefill_attempts",
        0,
        ALL,
    ),
    (
        {"disaggregation_mode": "prefill", "optimistic_prefill_attempts": 2, "pp_size": 2},
        "optimistic_prefill_attempts",
        0,
        ALL,
    ),
]


@pytest.mark.parametrize(("change", "flag", "value", "versions"), REWRITES)
def test_rewrites(change: dict[str, Any], flag: str, value: Any, versions: list[str]) -> None:
    found = []
    for version in PROFILES:
        plan = plan_of(HICACHE | change, version)
        rows = [(row.flag, row.resolved) for row in plan.launch.rewritten]
        if (flag, value) in rows:
            found.append(version)
            assert "PLAN-REWRITTEN" in codes(plan)
    assert found == versions


def test_direct_with_page_first_is_what_the_server_resolved() -> None:
    """The audit's row: accept only if the resolved layout is written down."""
    launch = plan_of(HICACHE | {"hicache_io_backend": "direct"}).launch
    assert (launch.io_backend, launch.mem_layout) == ("direct", "page_first_direct")


def test_flags_of_other_releases() -> None:
    old = parse_launch("--enable-nsa-prefill-context-parallel --nsa-prefill-cp-mode round-robin-split --tp 4")
    assert (old.flags["enable_prefill_cp"], old.flags["cp_strategy"]) == (True, "interleave")
    assert "PLAN-REJECTED" not in codes(compute_plan(old, version="0.5.19"))
    assert "PLAN-REJECTED" in codes(compute_plan(old, version="0.5.20"))
    young = parse_launch("--hicache-host-memory-fraction 0.5 --enable-hicache")
    assert "PLAN-REJECTED" in codes(compute_plan(young, version="0.5.20"))
    assert "PLAN-REJECTED" not in codes(compute_plan(young, version="0.5.23"))


def test_every_rule_has_a_row_here() -> None:
    tested = {row[0] for row in ROWS} | {
        "LayerSplit without DSA",
        "DCP + HiCache",
        "DCP + HiCache, L1 and L2 only",
        "DCP + HiCache without MLA",
        "HiCache + LMCache",
        "MTP + HiCache on HiRadixCache",
    }
    rules = (*LAYER_SPLIT_RULES, *PARALLEL_RULES, *HICACHE_RULES)
    assert {rule.rule for rule in rules} <= tested
