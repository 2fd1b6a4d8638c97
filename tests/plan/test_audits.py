"""Every number in the tables and the prose of the two audits (SGLang 0.5.18), held against the source.

Where the source differs, the test holds the source's number, names the audit's, and the plan's notes say so.
"""

from __future__ import annotations

import pytest

from ranktop.plan import GB, GIB, Plan, layersplit, model_named, profile_for
from ranktop.plan import device as l1
from ranktop.plan.gate import RESERVE_BYTES
from ranktop.plan.l3 import HIRADIX, UNIFIED

from .support import HICACHE, LAYER_SPLIT, plan_of

ONE_MILLION = 1_048_576


def audit_plan(dtype: str, mtp: bool = False, size: float = 120) -> Plan:
    flags = {**HICACHE, "kv_cache_dtype": {"BF16": "bfloat16", "FP8": "fp8_e4m3"}[dtype], "hicache_size": size}
    return plan_of(flags | ({"speculative_algorithm": "EAGLE"} if mtp else {}))


def said(plan: Plan, words: str) -> bool:
    return any(words in note for note in plan.notes)


def test_rows_of_one_layer_and_token() -> None:
    assert audit_plan("BF16").ranks[0].host.row_bytes == 1152 == (512 + 64) * 2
    assert audit_plan("FP8").ranks[0].host.row_bytes == 656 == 512 + 512 // 128 * 4 + 64 * 2 == 528 + 128
    assert audit_plan("FP8").ranks[0].host.index_bytes_per_token // 78 == 132 == 128 + 128 // 128 * 4


@pytest.mark.parametrize(
    ("dtype", "mtp", "primary", "indexer", "combined", "overhead"),
    [
        ("BF16", False, 89_856, 10_296, 100_152, 11.458333),
        ("FP8", False, 51_168, 10_296, 61_464, 20.121951),
        ("BF16", True, 91_008, 10_428, 101_436, 11.458333),
        ("FP8", True, 51_824, 10_428, 62_252, 20.121951),
    ],
)
def test_geometry(dtype: str, mtp: bool, primary: int, indexer: int, combined: int, overhead: float) -> None:
    host = audit_plan(dtype, mtp).ranks[0].host
    assert (host.bytes_per_token, host.index_bytes_per_token) == (primary, indexer)
    assert host.bytes_per_token + host.index_bytes_per_token == combined
    assert round(100 * indexer / primary, 6) == overhead


def test_expansion_factors() -> None:
    assert round(100_152 / 89_856, 6) == 1.114583
    assert round(61_464 / 51_168, 7) == 1.2012195


SIZES = [
    ("BF16", 64, 64.000475, 7.333388, 71.333863, 570.670904, 570.670903),
    ("BF16", 96, 96.003588, 11.000411, 107.003999, 856.031992, 856.031994),
    ("BF16", 120, 120.001610, 13.750184, 133.751794, 1070.014352, 1070.014353),
    ("FP8", 64, 64.001753, 12.878402, 76.880155, 615.041240, 615.041237),
    ("FP8", 96, 96.002630, 19.317602, 115.320232, 922.561856, 922.561855),
    ("FP8", 120, 120.000012, 24.146344, 144.146356, 1153.170848, 1153.170850),
]


@pytest.mark.parametrize(("dtype", "size", "primary", "indexer", "combined", "audit_node", "node"), SIZES)
def test_sizes(
    dtype: str, size: int, primary: float, indexer: float, combined: float, audit_node: float, node: float
) -> None:
    plan = audit_plan(dtype, size=size)
    host = plan.ranks[0].host
    assert round(host.primary_bytes / GB, 6) == primary
    assert round(host.indexer_bytes / GB, 6) == indexer
    assert round(host.combined_bytes / GB, 6) == combined
    # The audit multiplies a rounded figure: its last digit is off, and the output says so.
    assert round(plan.node.combined_bytes / GB, 6) == node
    assert round(combined * 8, 6) == audit_node != node
    assert said(plan, "last digit is off")


@pytest.mark.parametrize(
    ("dtype", "size", "indexer", "combined"),
    [
        ("BF16", 64, 7.334046720, 71.334521856),
        ("BF16", 96, 11.001070080, 107.004658176),
        ("BF16", 120, 13.750843392, 133.752453120),
        ("FP8", 64, 12.879060480, 76.880813568),
        ("FP8", 96, 19.318261248, 115.320890880),
        ("FP8", 120, 24.147002880, 144.147015168),
    ],
)
def test_allocated_is_one_page_a_layer_more(dtype: str, size: int, indexer: float, combined: float) -> None:
    plan = audit_plan(dtype, size=size)
    host = plan.ranks[0].host
    assert host.indexer_allocated_bytes / GB == indexer
    assert host.allocated_bytes / GB == combined
    assert host.indexer_allocated_bytes - host.indexer_bytes == 658_944
    assert said(plan, "one page a layer more")


def test_free_memory_of_the_120_gb_row() -> None:
    plan = audit_plan("FP8")
    assert round(plan.ranks[0].host.combined_bytes / GIB, 6) == 134.246756
    assert round(plan.node.per_rank_gate_bytes / GIB, 6) == 144.246756
    assert plan.node.reserve_bytes == RESERVE_BYTES == 10 * GIB


@pytest.mark.parametrize(
    ("dtype", "mtp", "gb", "gib", "audit_node", "node"),
    [
        ("BF16", False, 105.016984, 97.804688, 840.135872, 840.135868),
        ("BF16", True, 106.363355, 99.058594, 850.906840, 850.906841),
        ("FP8", False, 64.449675, 60.023438, 515.597400, 515.597402),
        ("FP8", True, 65.275953, 60.792969, 522.207624, 522.207625),
    ],
)
def test_one_million_tokens(dtype: str, mtp: bool, gb: float, gib: float, audit_node: float, node: float) -> None:
    host = audit_plan(dtype, mtp).ranks[0].host
    size = ONE_MILLION * (host.bytes_per_token + host.index_bytes_per_token)
    assert (round(size / GB, 6), round(size / GIB, 6)) == (gb, gib)
    assert round(8 * size / GB, 6) == node != audit_node


def test_model_facts() -> None:
    model = model_named("glm-5.2")
    assert (model.layers, model.mtp_layers, model.kv_lora_rank, model.qk_rope_head_dim) == (78, 1, 512, 64)
    assert (model.index_head_dim, model.max_position) == (128, ONE_MILLION)
    assert model.architecture == "GlmMoeDsaForCausalLM"


def test_defaults() -> None:
    off = plan_of({"tp_size": 8}).launch
    assert off.hicache is False
    on = plan_of({"tp_size": 8, "enable_hierarchical_cache": True}).launch
    assert (on.hicache_ratio, on.hicache_size_gb) == (2.0, None)
    assert (on.write_policy, on.io_backend, on.mem_layout) == ("write_through", "kernel", "page_first")
    l3 = plan_of({"enable_hierarchical_cache": True, "hicache_storage_backend": "file"}).l3
    assert (l3.policy, l3.threshold_tokens) == ("timeout", 256)
    assert plan_of(HICACHE | {"hicache_ratio": 3.0}).launch.hicache_ratio is None


@pytest.mark.parametrize(
    ("tokens", "audit", "source"), [(8192, 2.8, 3.0), (65_536, 8.4, 17.0), (ONE_MILLION, 30.0, 257.0)]
)
def test_deadlines(tokens: int, audit: float, source: float) -> None:
    plan = plan_of(HICACHE | {"hicache_storage_backend": "file"})
    assert HIRADIX.seconds(tokens) == audit
    assert UNIFIED.seconds(tokens) == plan.l3.deadline_seconds[str(tokens)] == source
    assert plan.l3.cache == "UnifiedRadixCache"
    assert said(plan, "belongs to HiRadixCache")


@pytest.mark.parametrize(
    ("cp", "owned", "equivalents", "reduction"),
    [
        (2, [39, 39], 40, 48.7179),
        (4, [20, 20, 19, 19], 21, 73.0769),
        (8, [10, 10, 10, 10, 10, 10, 9, 9], 11, 85.8974),
    ],
)
def test_layer_split_bounds(cp: int, owned: list[int], equivalents: int, reduction: float) -> None:
    split = plan_of(LAYER_SPLIT | {"tp_size": cp}).layer_split
    assert [end - start for start, end in split.ranges] == owned
    assert (split.max_owned, split.layer_equivalents, split.reduction_percent) == (max(owned), equivalents, reduction)


def test_ranges_and_owner_at_cp4() -> None:
    plan = plan_of(LAYER_SPLIT)
    assert plan.layer_split.ranges == ((0, 20), (20, 40), (40, 59), (59, 78))
    assert layersplit.owners(78, 4)[47] == 2
    assert [rank.rank for rank in plan.ranks] == ["ATTN_CP0 TP0", "ATTN_CP1 TP1", "ATTN_CP2 TP2", "ATTN_CP3 TP3"]


def test_published_cell_is_gib_of_bf16_owned_layers() -> None:
    """0.77 to 0.20 "GB" a rank at 8192 tokens, CP4; 3.08 to 0.80 over four ranks; 74.026 %."""
    profile, model = profile_for("0.5.18")[0], model_named("glm-5.2")

    def pool(split: int) -> l1.DevicePool:
        shape = l1.DeviceShape(1152, "bfloat16", 0, 78, split=split, hicache_or_pd=True)
        return l1.device_pool(profile, model, shape, 8192, 64)

    whole, owned = pool(1).reported_bytes / GIB, pool(4).reported_bytes / GIB
    assert (round(whole, 5), round(owned, 5)) == (0.77007, 0.19745)
    assert (round(whole, 2), round(owned, 2)) == (0.77, 0.20)
    assert (round(0.77 * 4, 2), round(0.20 * 4, 2)) == (3.08, 0.80)
    assert round((0.77 - 0.20) / 0.77 * 100, 3) == 74.026
    assert round(100 * (1 - owned / whole), 2) == 74.36
    with_scratch = pool(4).total_bytes / GIB
    assert round(with_scratch, 5) == 0.20733
    assert round(100 * (1 - with_scratch / whole), 4) == 73.0769
    assert said(plan_of(LAYER_SPLIT), "74.026 % is its rounding of 74.36 %")


def test_admitted_tokens_rise_less_than_the_pool_falls() -> None:
    """61464 to 24072 bytes a token: 2.55x the tokens, not 3.71x, until 0.5.21."""
    plan = plan_of(LAYER_SPLIT)
    assert (plan.ranks[0].device.bytes_per_token, round(61_464 / 24_072, 2)) == (24_072, 2.55)
    assert said(plan, "2.55x the tokens are admitted, not 3.71x")
    mended = plan_of(LAYER_SPLIT, version="0.5.22")
    assert round(53_940 / mended.ranks[0].device.bytes_per_token, 2) == 3.64
    assert not said(mended, "2.55x")


def test_old_attn_cp_size_is_overwritten() -> None:
    """The audit's skeleton asks for --attn-cp-size 4 without saying that TP must be 4."""
    plan = plan_of(LAYER_SPLIT | {"tp_size": 8, "attn_cp_size": 4})
    assert plan.launch.attn_cp_size == 8
    assert [(row.flag, row.requested, row.resolved) for row in plan.launch.rewritten] == [("attn_cp_size", 4, 8)]
    assert plan_of(LAYER_SPLIT | {"tp_size": 8, "attn_cp_size": 4}, version="0.5.22").launch.attn_cp_size == 4


@pytest.mark.parametrize(
    ("dtype", "mtp", "overhead"),
    [("BF16", False, 3.084936), ("FP8", False, 5.417448), ("BF16", True, 3.190928), ("FP8", True, 5.603581)],
)
def test_from_0_5_22_the_indexer_is_compact(dtype: str, mtp: bool, overhead: float) -> None:
    flags = {**HICACHE, "kv_cache_dtype": {"BF16": "bfloat16", "FP8": "fp8_e4m3"}[dtype]}
    host = plan_of(flags | ({"speculative_algorithm": "EAGLE"} if mtp else {}), version="0.5.23").ranks[0].host
    assert round(100 * host.index_bytes_per_token / host.bytes_per_token, 6) == overhead


def test_blackwell_rows_are_raw() -> None:
    """656 is the row of Hopper and SM120; the default backend of SM100 stores 576."""
    flags = HICACHE | {"kv_cache_dtype": "auto"}
    rows = {arch: plan_of(flags, arch=arch).ranks[0].host.row_bytes for arch in ("sm90", "sm100", "sm120")}
    assert rows == {"sm90": 1152, "sm100": 576, "sm120": 656}
    assert said(plan_of(flags, arch="sm100"), "not the audit's 656")


def test_issue_31600_logs_the_row_width() -> None:
    assert said(audit_plan("FP8"), "Unsupported element_size = 656")
    assert not said(audit_plan("BF16"), "Unsupported element_size")
