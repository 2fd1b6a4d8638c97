"""Findings that a launch alone decides, ranks and their names, versions without a profile, automatic size."""

from __future__ import annotations

from typing import Any

import pytest

from ranktop.plan import (
    GIB,
    LaunchRequest,
    PlanError,
    compute_plan,
    geometry,
    launch_from_server_info,
    profile_for,
    rank_tags,
)
from ranktop.plan.arguments import arguments_of
from ranktop.plan.autosize import auto_ratio
from ranktop.plan.gate import node_plan
from ranktop.plan.setting import stage_layers

from .support import HICACHE, codes, plan_of, plan_of_line


def test_smaller_than_l1() -> None:
    host_tokens = plan_of(HICACHE).ranks[0].host.tokens
    assert "PLAN-L2-SMALLER-THAN-L1" in codes(plan_of(HICACHE, device_tokens=host_tokens))
    assert "PLAN-L2-SMALLER-THAN-L1" not in codes(plan_of(HICACHE, device_tokens=host_tokens - 1))
    assert "PLAN-L2-SMALLER-THAN-L1" not in codes(plan_of(HICACHE))


def test_size_beats_ratio() -> None:
    both = HICACHE | {"hicache_ratio": 4.0}
    assert "PLAN-SIZE-BEATS-RATIO" in codes(plan_of(both))
    assert "PLAN-SIZE-BEATS-RATIO" not in codes(plan_of(HICACHE))
    # A server's report carries the default ratio beside the size.
    assert "PLAN-SIZE-BEATS-RATIO" not in codes(compute_plan(launch_from_server_info(both)))


def test_indexer_on_top_is_said_for_dsa_only() -> None:
    assert "PLAN-SIZE-WITHOUT-INDEXER" in codes(plan_of(HICACHE))
    assert "PLAN-SIZE-WITHOUT-INDEXER" not in codes(plan_of(HICACHE, model="deepseek-v3"))


@pytest.mark.parametrize(
    ("version", "profile", "exact"),
    [
        ("0.5.18", "0.5.18", True),
        ("v0.5.19", "0.5.19", True),
        ("0.5.23.post1", "0.5.23", False),
        ("0.5.15", "0.5.16", False),
        ("0.6.0", "0.5.23", False),
        ("0.5.18+cu129", "0.5.18", True),
    ],
)
def test_nearest_profile(version: str, profile: str, exact: bool) -> None:
    plan = plan_of(HICACHE, version)
    assert (plan.sglang.version, plan.sglang.profile, plan.sglang.exact) == (version, profile, exact)
    assert ("PLAN-VERSION-INEXACT" in codes(plan)) is not exact


def test_no_version_is_no_version() -> None:
    with pytest.raises(PlanError, match="--sglang 'latest'"):
        profile_for("latest")


def test_metrics_off_names_what_is_missing() -> None:
    plan = plan_of_line("--tp 8 --enable-metrics --enable-cache-report")
    finding = next(finding for finding in plan.findings if finding.code == "PLAN-METRICS-OFF")
    assert finding.evidence["missing"] == ["--enable-metrics-for-all-schedulers", "--export-metrics-to-file"]
    everything = "--enable-metrics --enable-cache-report --enable-metrics-for-all-schedulers --export-metrics-to-file"
    assert "PLAN-METRICS-OFF" not in codes(plan_of_line(f"--tp 8 {everything}"))


RANKS: list[tuple[dict[str, Any], list[str], list[int]]] = [
    ({}, ["TP0"], [0]),
    ({"tp_size": 2}, ["TP0", "TP1"], [0, 1]),
    ({"tp_size": 2, "base_gpu_id": 4, "gpu_id_step": 2}, ["TP0", "TP1"], [4, 6]),
    ({"tp_size": 2, "dp_size": 2}, ["DP0 TP0", "DP0 TP1", "DP1 TP0", "DP1 TP1"], [0, 1, 2, 3]),
    (
        {"tp_size": 4, "dp_size": 2, "enable_dp_attention": True, "ep_size": 4},
        ["DP0 TP0 EP0", "DP0 TP1 EP1", "DP1 TP2 EP2", "DP1 TP3 EP3"],
        [0, 1, 2, 3],
    ),
    ({"tp_size": 2, "pp_size": 2}, ["PP0 TP0", "PP0 TP1", "PP1 TP0", "PP1 TP1"], [0, 1, 2, 3]),
    # SGLang steps over GPUs within a stage and not between stages: two ranks land on GPU 2.
    (
        {"tp_size": 2, "pp_size": 2, "gpu_id_step": 2},
        ["PP0 TP0", "PP0 TP1", "PP1 TP0", "PP1 TP1"],
        [0, 2, 2, 4],
    ),
    ({"tp_size": 4, "nnodes": 2, "node_rank": 1}, ["TP2", "TP3"], [0, 1]),
    ({"tp_size": 2, "pp_size": 2, "nnodes": 2, "node_rank": 1}, ["PP1 TP0", "PP1 TP1"], [0, 1]),
    (
        {"tp_size": 4, "enable_prefill_cp": True, "cp_strategy": "interleave", "disaggregation_mode": "prefill"},
        ["ATTN_CP0 TP0", "ATTN_CP1 TP1", "ATTN_CP2 TP2", "ATTN_CP3 TP3"],
        [0, 1, 2, 3],
    ),
]


@pytest.mark.parametrize(("flags", "names", "gpus"), RANKS)
def test_ranks_of_this_node(flags: dict[str, Any], names: list[str], gpus: list[int]) -> None:
    plan = plan_of(flags)
    assert [rank.rank for rank in plan.ranks] == names
    assert [rank.cuda_index for rank in plan.ranks] == gpus
    if not flags.get("enable_prefill_cp"):
        assert list(rank_tags(arguments_of(LaunchRequest(flags)))) == names


def test_zigzag_and_deepep_spread_the_experts() -> None:
    zigzag = {"tp_size": 2, "enable_prefill_cp": True, "cp_strategy": "zigzag", "disaggregation_mode": "prefill"}
    assert [rank.rank for rank in plan_of(zigzag).ranks] == ["ATTN_CP0 TP0 EP0", "ATTN_CP1 TP1 EP1"]
    deepep = {"tp_size": 2, "moe_a2a_backend": "deepep"}
    assert [rank.rank for rank in plan_of(deepep).ranks] == ["TP0 EP0", "TP1 EP1"]


def test_dp_under_prefill_cp_is_attention_dp_from_0_5_22() -> None:
    flags = {
        "tp_size": 4,
        "dp_size": 2,
        "enable_prefill_cp": True,
        "cp_strategy": "interleave",
        "disaggregation_mode": "prefill",
    }
    names = [rank.rank for rank in plan_of(flags, "0.5.22").ranks]
    assert names == ["DP0 ATTN_CP0 TP0", "DP0 ATTN_CP1 TP1", "DP1 ATTN_CP0 TP2", "DP1 ATTN_CP1 TP3"]
    assert len(plan_of(flags, "0.5.21").ranks) == 8
    with pytest.raises(PlanError, match="not divisible"):
        plan_of(flags | {"dp_size": 3}, "0.5.22")


def test_the_gate_of_ranks_that_differ_takes_the_worst_order() -> None:
    """By hand, in pages of 64 tokens: what an indexer must find free is least for the rank with the smallest."""
    large, small = (
        geometry.host_pool(100, layers, index_layers, 10, 64, geometry.PoolTokens(640, 10))
        for layers, index_layers in ((10, 10), (5, 2))
    )
    node = node_plan(profile_for("0.5.18")[0], [large, small], 2)
    primaries, indexers, allocated = (640_000, 320_000), (64_000, 12_800), (640_000 + 70_400, 320_000 + 14_080)
    assert node.surely_fails_below_bytes == 10 * GIB + sum(primaries) + indexers[1]
    assert node.surely_fits_bytes == 10 * GIB + max(
        allocated[1] + primaries[0] + indexers[0], allocated[0] + primaries[1] + indexers[1]
    )


@pytest.mark.parametrize(
    ("layers", "stages", "expected"),
    [
        (78, 4, [(0, 19), (19, 38), (38, 58), (58, 78)]),
        (61, 4, [(0, 15), (15, 30), (30, 45), (45, 61)]),
        (78, 2, [(0, 39), (39, 78)]),
    ],
)
def test_the_last_stages_hold_what_is_left_over(layers: int, stages: int, expected: list[tuple[int, int]]) -> None:
    """`get_pp_indices` of 0.5.16 to 0.5.23; LayerSplit gives what is left over to the first ranks."""
    assert list(stage_layers({}, layers, stages)) == expected


@pytest.mark.parametrize(
    ("version", "bytes_per_token"), [("0.5.17", int(61_464 * (1 + 1 / 78))), ("0.5.18", 61_464 + 656 + 132)]
)
def test_the_draft_in_the_l1_cell(version: str, bytes_per_token: int) -> None:
    """Until 0.5.17 `pool_configurator.py` scales the cell by layers; from 0.5.18 a draft layer is one more."""
    plan = plan_of({"kv_cache_dtype": "fp8_e4m3", "speculative_algorithm": "EAGLE"} | HICACHE, version)
    assert plan.ranks[0].device.bytes_per_token == bytes_per_token


DECODE = {"disaggregation_mode": "decode", "enable_hierarchical_cache": True}
RADIX = {"disaggregation_decode_enable_radix_cache": True}
BUFFER_ONLY = {
    "enable_hierarchical_cache": True,
    "hicache_storage_backend": "file",
    "hicache_host_memory_mode": "buffer_only",
}


@pytest.mark.parametrize(
    ("flags", "model", "version", "ratio"),
    [
        ({"enable_hierarchical_cache": True}, "qwen3-32b", "0.5.18", 2.0),
        (BUFFER_ONLY, "glm-5.2", "0.5.19", 1.2),
        (DECODE, "qwen3-32b", "0.5.18", 1.0),
        (DECODE, "qwen3-32b", "0.5.17", 2.0),
        (DECODE, "qwen3-32b", "0.5.19", 2.0),
        (DECODE, "glm-5.2", "0.5.18", 2.0),
        (DECODE | {"disaggregation_decode_retraction_backup": "host_pool"}, "glm-5.2", "0.5.18", 1.0),
        (DECODE | {"disaggregation_decode_retraction_backup": "cpu_tensor"}, "qwen3-32b", "0.5.18", 2.0),
        (DECODE | RADIX, "qwen3-32b", "0.5.18", 2.0),
        (DECODE | RADIX | {"disaggregation_decode_retraction_backup": "host_pool"}, "qwen3-32b", "0.5.18", 1.0),
        (DECODE | {"dcp_size": 2, "tp_size": 2}, "qwen3-32b", "0.5.18", 2.0),
        (DECODE | {"enable_priority_scheduling": True}, "qwen3-32b", "0.5.18", 2.0),
        (
            DECODE | {"enable_priority_scheduling": True, "disable_priority_preemption": True},
            "qwen3-32b",
            "0.5.18",
            1.0,
        ),
    ],
)
def test_the_ratio_where_neither_it_nor_a_size_is_given(
    flags: dict[str, Any], model: str, version: str, ratio: float
) -> None:
    """`kv_cache_builder.py` and `server_args.py` (later `hicache_hook.py`) of each release."""
    assert compute_plan(LaunchRequest(flags), version=version, model=model).launch.hicache_ratio == ratio


def test_stages_by_environment() -> None:
    request = LaunchRequest({"pp_size": 2}, environment={"SGLANG_PP_LAYER_PARTITION": "30,48"})
    assert [(rank.layers.start, rank.layers.end) for rank in compute_plan(request).ranks] == [(0, 30), (30, 78)]
    with pytest.raises(PlanError, match="SGLANG_PP_LAYER_PARTITION '30,40'"):
        compute_plan(LaunchRequest({"pp_size": 2}, environment={"SGLANG_PP_LAYER_PARTITION": "30,40"}))


@pytest.mark.parametrize(
    ("stages", "partition", "words"),
    [(79, None, "--pp-size 79: the model has 78 layers"), (2, "78,0", "'78,0': 2 whole numbers from 1 on")],
)
def test_a_stage_without_a_layer_is_one_line(stages: int, partition: str | None, words: str) -> None:
    environment = {} if partition is None else {"SGLANG_PP_LAYER_PARTITION": partition}
    given = {"pp_size": stages, "enable_hierarchical_cache": True, "hicache_size": 1}
    with pytest.raises(PlanError, match=words):
        compute_plan(LaunchRequest(given, environment=environment))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"tp_size": 0}, "--tp-size 0"),
        ({"base_gpu_id": -1}, "--base-gpu-id -1: a whole number from 0"),
        ({"gpu_id_step": 0}, "--gpu-id-step 0: a whole number from 1"),
        ({"tp_size": -8}, "--tp-size -8"),
        ({"tp_size": 10**9}, "--tp-size 1000000000"),
        ({"hicache_size": -1}, "--hicache-size -1"),
        ({"hicache_size": float("nan")}, "--hicache-size nan"),
        ({"hicache_ratio": float("inf")}, "--hicache-ratio inf"),
        ({"tp_size": 8, "attn_cp_size": 3}, "not divisible"),
        ({"tp_size": 8, "dp_size": 3, "enable_dp_attention": True}, "not divisible"),
        ({"nnodes": 2, "node_rank": 2, "tp_size": 2}, "--node-rank 2"),
        ({"nnodes": 3, "tp_size": 8}, "--nnodes 3"),
        ({"tp_size": 4096, "pp_size": 4096}, "at most 4096 ranks"),
        ({"hicache_mem_layout": "sideways"}, "--hicache-mem-layout 'sideways'"),
        ({"kv_cache_dtype": "int3"}, "--kv-cache-dtype 'int3'"),
        ({"page_size": 0}, "--page-size 0"),
        ({"max_total_tokens": "many"}, "--max-total-tokens 'many': expected `int"),
        ({"enable_metrics": "maybe"}, "--enable-metrics 'maybe'"),
        ({"disaggregation_mode": "both"}, "--disaggregation-mode 'both'"),
        ({"hicache_storage_backend_extra_config": "{not json"}, "extra-config"),
    ],
)
def test_bad_values_are_one_line(flags: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words) as error:
        plan_of(flags)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "value", "words"), [("device_tokens", -1, "--device-tokens"), ("arch", "sm70", "--arch")]
)
def test_bad_options(name: str, value: Any, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        plan_of(HICACHE, **{name: value})


def test_automatic_size() -> None:
    """0.5.21 and later, with neither size nor ratio: min(default, share x 0.8 x 0.95 / device bytes)."""
    unsized = {"tp_size": 8, "enable_hierarchical_cache": True, "kv_cache_dtype": "fp8_e4m3"}
    roomy = plan_of(unsized, "0.5.21", device_tokens=100_000, host_available_bytes=4 << 40)
    assert roomy.ranks[0].host.tokens == 200_064
    free = 10 * GIB + 8 * GIB
    tight = plan_of(unsized, "0.5.21", device_tokens=100_000, host_available_bytes=free)
    device_bytes = tight.ranks[0].device.pool_bytes
    assert auto_ratio(2.0, free, 8, device_bytes) == GIB * 0.8 * 0.95 / device_bytes
    assert tight.ranks[0].host.tokens < roomy.ranks[0].host.tokens
    asked = plan_of(unsized | {"hicache_ratio": 2.0}, "0.5.21", device_tokens=100_000, host_available_bytes=free)
    assert asked.ranks[0].host.tokens == 200_064
    before = plan_of(unsized, "0.5.20", device_tokens=100_000, host_available_bytes=free)
    assert before.ranks[0].host.tokens == 200_064


def test_storage_settings_change_deadlines() -> None:
    config = '{"prefetch_threshold": 1024, "prefetch_timeout_base": 3, "prefetch_timeout_per_ki_token": 0.5}'
    flags = HICACHE | {"hicache_storage_backend": "file", "hicache_storage_backend_extra_config": config}
    l3 = plan_of(flags).l3
    assert (l3.threshold_tokens, l3.deadline_seconds["8192"]) == (1024, 7.0)


def test_plain_mla_changes_its_deadlines_between_0_5_18_and_0_5_19() -> None:
    flags = HICACHE | {"hicache_storage_backend": "file", "page_size": 64}
    seconds = {
        version: plan_of(flags, version, model="deepseek-v3").l3.deadline_seconds["65536"]
        for version in ("0.5.18", "0.5.19")
    }
    assert seconds == {"0.5.18": 8.4, "0.5.19": 17.0}


def notes(flags: dict[str, Any], version: str = "0.5.18", **options: Any) -> str:
    return "\n".join(plan_of(flags, version, **options).notes)


def test_notes_say_what_surprises() -> None:
    unsized = {"enable_hierarchical_cache": True}
    assert "Neither size nor ratio" in notes(unsized, "0.5.21")
    assert "Neither size nor ratio" not in notes(unsized, "0.5.20")
    assert "Neither size nor ratio" not in notes(unsized | {"hicache_ratio": 2.0}, "0.5.21")
    assert "fewest tokens of any stage" in notes(HICACHE | {"pp_size": 2})
    assert "fewest tokens of any stage" not in notes(HICACHE)
    assert "needs the L1 pool's tokens" in notes(unsized)
    assert "takes whole GB" in notes(HICACHE | {"hicache_size": 0.5})
    assert "a host pool of its own on top of the size: 1.35 GB" in notes(
        HICACHE | {"speculative_algorithm": "EAGLE"}, "0.5.17"
    )
    assert "packed into the same pool" in notes(HICACHE | {"speculative_algorithm": "EAGLE"})
    assert "packed into the same pool" not in notes(HICACHE)
    storage = HICACHE | {"hicache_storage_backend": "file"}
    assert "the first blocked poll" in notes(storage, "0.5.23")
    assert "From 0.5.19 on the same server" in notes(storage | {"page_size": 64}, model="deepseek-v3")
    assert "HiSparse has a host pool" in notes({"enable_hisparse": True})
    assert "retracted requests" in notes({"disaggregation_mode": "decode"}, model="qwen3-32b")


def test_a_report_is_not_rewritten_again() -> None:
    report = HICACHE | {"hicache_io_backend": "direct", "hicache_mem_layout": "page_first", "page_size": 64}
    assert compute_plan(launch_from_server_info(report)).launch.rewritten == ()
    assert plan_of(report).launch.rewritten != ()
