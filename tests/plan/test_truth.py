"""The plan against every figure that SGLang's own classes produced (tests/data/truth)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranktop.plan import GB, PROFILES, LaunchRequest, Plan, compute_plan, geometry, layersplit, model_named, profile_for
from ranktop.plan import device as l1
from ranktop.plan.gate import RESERVE_BYTES, gate_free_bytes
from ranktop.plan.l3 import DEFAULT_THRESHOLD_TOKENS, HIRADIX, UNIFIED, Deadline, cache_class

from . import truth
from .support import passes_check

GLM = truth.load("glm-5.2.json")
OTHERS = truth.load("other-models.json")
MODEL = model_named("glm-5.2")
DTYPES = {"bf16": "bfloat16", "fp8": "fp8_e4m3", "fp8_raw576(trtllm)": "fp8_e4m3"}


Check = Callable[[str, str, Any], None]


def cases(section: str, document: dict[str, Any] = GLM) -> Callable[[Check], Callable[[str], None]]:
    """One test a version, over all entries of the section that the version has."""
    found = truth.entries(document, section)
    assert found, f"no figures for {section}"

    def decorate(check: Check) -> Callable[[str], None]:
        @pytest.mark.parametrize("version", sorted({version for version, _, _ in found}))
        def test(version: str) -> None:
            for _, entry, figures in (case for case in found if case[0] == version):
                try:
                    check(version, entry, figures)
                except AssertionError as error:
                    raise AssertionError(f"{section} {entry}: {error}") from error

        return test

    return decorate


def flags_of(dtype: str, mtp: bool = False, **more: Any) -> dict[str, Any]:
    flags: dict[str, Any] = {"enable_hierarchical_cache": True, "kv_cache_dtype": DTYPES[dtype], **more}
    if dtype.endswith("(trtllm)"):
        flags |= {"dsa_prefill_backend": "trtllm", "dsa_decode_backend": "trtllm"}
    return flags | ({"speculative_algorithm": "EAGLE"} if mtp else {})


def plan_of(version: str, flags: dict[str, Any], **options: Any) -> Plan:
    return compute_plan(LaunchRequest(flags), version=version, **{"model": "glm-5.2", **options})


def same_pools(host: Any, figures: dict[str, Any]) -> None:
    assert (host.tokens, host.pages) == (figures["tokens"], figures["page_num"])
    assert host.primary_bytes == figures["primary_bytes"]
    assert host.indexer_allocated_bytes == figures.get("indexer_bytes_allocated", 0)
    assert host.allocated_bytes == figures["combined_bytes"]
    for ours, theirs in (
        ("layers", "primary_layers"),
        ("index_layers", "indexer_layers"),
        ("indexer_bytes", "indexer_bytes_checked"),
        ("bookkeeping_bytes", "bookkeeping_bytes"),
        ("logical_tokens", "logical_tokens"),
        ("row_bytes", "row_bytes_per_token_per_layer"),
    ):
        if theirs in figures:
            assert getattr(host, ours) == figures[theirs], ours


@pytest.mark.parametrize("version", PROFILES)
def test_every_profile_has_figures(version: str) -> None:
    assert version in truth.versions(GLM), "a profile without ground truth: see docs/profiles.md"
    for section in ("fixed", "ratio", "layersplit_host", "device_cell", "gate", "prefetch", "mtp_sidecar"):
        assert any(found == version for found, _, _ in truth.entries(GLM, section)), section


def test_every_figure_has_a_profile() -> None:
    assert truth.versions(GLM) | truth.versions(OTHERS) == set(PROFILES)


@cases("fixed")
def test_size(version: str, entry: str, figures: dict[str, Any]) -> None:
    dtype, mtp, size, *layout = entry.split("|")
    flags = flags_of(dtype, mtp == "mtp1", hicache_size=int(size.removesuffix("GB")))
    if layout:
        flags["hicache_mem_layout"] = layout[0].removeprefix("layout=")
    plan = plan_of(version, flags)
    same_pools(plan.ranks[0].host, figures)
    if figures["indexer_staging_device_bytes"]:
        primary = 64 * 64 * plan.ranks[0].host.bytes_per_token
        assert plan.ranks[0].device.staging_bytes == figures["indexer_staging_device_bytes"] + primary
    shape = l1.DeviceShape(plan.ranks[0].host.row_bytes, DTYPES[dtype], 0, 78, hicache_or_pd=True)
    pool = l1.device_pool(profile_for(version)[0], MODEL, shape, 1024, 64)
    assert pool.total_bytes == figures["device_pool_bytes"]


@cases("exact_multiple")
def test_exact_multiple_gains_a_page(version: str, entry: str, figures: dict[str, Any]) -> None:
    plan = plan_of(version, flags_of("fp8", hicache_size=figures["hicache_size_gb"]))
    host = plan.ranks[0].host
    assert (host.tokens, host.pages) == (figures["tokens"], figures["page_num"])
    assert host.tokens > figures["unaligned_tokens"]


@cases("page_size")
def test_dsa_pages_are_64_tokens(version: str, entry: str, figures: dict[str, Any]) -> None:
    plan = plan_of(version, flags_of("fp8", page_size=int(entry), hicache_size=16))
    assert plan.launch.page_size == 64
    assert [change.flag for change in plan.launch.rewritten] == ([] if figures["ok"] else ["page_size"])
    if figures["ok"]:
        assert plan.ranks[0].host.tokens == figures["result"]["tokens"]


@cases("ratio")
def test_ratio(version: str, entry: str, figures: dict[str, Any]) -> None:
    dtype, mtp, device, ratio = entry.split("|")
    flags = flags_of(dtype, mtp == "mtp1", hicache_ratio=float(ratio.removeprefix("ratio=")))
    device_tokens = int(device.removeprefix("device="))
    plan = plan_of(version, flags, device_tokens=device_tokens)
    same_pools(plan.ranks[0].host, figures)
    smaller = [finding.code for finding in plan.findings if finding.code == "PLAN-L2-SMALLER-THAN-L1"]
    assert bool(smaller) == (figures["tokens"] <= device_tokens)


@cases("pp")
def test_stage_alone(version: str, entry: str, figures: dict[str, Any]) -> None:
    dtype, stages, stage, bounds = entry.split("|")
    profile = profile_for(version)[0]
    # The figures are a pool class's answers for the bounds it was given, in the order of LayerSplit's ranges.
    start, end = layersplit.ranges(78, int(stages.removeprefix("pp")))[int(stage.removeprefix("stage"))]
    assert bounds == f"[{start},{end})"
    row = {"bf16": 1152, "fp8": 656}[dtype]
    slots = geometry.page_aligned(geometry.requested_by_size(120, row * (end - start)), 64)
    index_layers = geometry.index_layers_in(MODEL, start, end) if profile.host_index_elision else end - start
    host = geometry.host_pool(row, end - start, index_layers, 132, 64, slots)
    same_pools(host, {**figures, "combined_bytes": host.allocated_bytes})


@cases("pp_min_synced_DERIVED")
def test_stages_share_the_fewest_tokens(version: str, entry: str, figures: dict[str, Any]) -> None:
    dtype, stages = entry.split("|")
    # Made with the larger stages first, where get_pp_indices has them last (test_plan_rules.py): so they are given.
    bounds = layersplit.ranges(78, int(stages.removeprefix("pp")))
    partition = {"SGLANG_PP_LAYER_PARTITION": ",".join(str(end - start) for start, end in bounds)}
    request = LaunchRequest(flags_of(dtype, pp_size=len(bounds), hicache_size=120), environment=partition)
    plan = compute_plan(request, version=version, model="glm-5.2")
    hosts = [rank.host for rank in plan.ranks]
    assert {host.tokens for host in hosts} == {figures["tokens"]}
    assert [host.primary_bytes for host in hosts] == figures["per_stage_primary_bytes"]
    assert [host.indexer_allocated_bytes for host in hosts] == figures["per_stage_indexer_allocated"]


@cases("partition")
def test_partition(version: str, entry: str, figures: dict[str, Any]) -> None:
    layers, parts = (int(part[1:].removeprefix("P")) for part in entry.split("|"))
    assert [list(part) for part in layersplit.ranges(layers, parts)] == figures["ranges"]
    assert layersplit.layer_equivalents(layers, parts) == figures["effective_layers_with_scratch"]


def layer_split_flags(dtype: str, mtp: bool, parts: int, **more: Any) -> dict[str, Any]:
    return flags_of(dtype, mtp, **more) | {
        "disaggregation_mode": "prefill",
        "enable_prefill_cp": True,
        "cp_strategy": "interleave",
        "enable_dsa_cache_layer_split": True,
        "tp_size": parts,
    }


@cases("layersplit_host")
def test_layer_split_host(version: str, entry: str, figures: dict[str, Any]) -> None:
    dtype, mtp, size, parts, rank = entry.split("|")
    flags = layer_split_flags(
        dtype, mtp == "mtp1", int(parts.removeprefix("CP")), hicache_size=int(size.removesuffix("GB"))
    )
    same_pools(plan_of(version, flags).ranks[int(rank.removeprefix("rank"))].host, figures)


@cases("layersplit_device")
def test_layer_split_device(version: str, entry: str, figures: dict[str, Any]) -> None:
    dtype, size, parts, rank = entry.split("|")
    flags = layer_split_flags(dtype, False, int(parts.removeprefix("CP")), hicache_size=1)
    plan = plan_of(version, flags, device_tokens=int(size.removeprefix("size=")))
    split = int(parts.removeprefix("CP"))
    number = int(rank.removeprefix("rank"))
    device = plan.ranks[number].device
    assert device.pool_bytes == figures["total"]
    assert (device.scratch_bytes or 0) == figures["remote_kv"] + figures["remote_index"]
    assert plan.ranks[number].layers.owned == figures["owned_kv_layers"]
    row = plan.ranks[number].host.row_bytes
    shape = l1.DeviceShape(row, DTYPES[dtype], 0, 78, split=split, hicache_or_pd=True)
    pool = l1.device_pool(profile_for(version)[0], MODEL, shape, int(size.removeprefix("size=")), 64, number)
    assert (pool.owned_kv_bytes, pool.owned_index_bytes) == (figures["owned_kv"], figures["owned_index"])
    assert pool.reported_bytes == figures["reported_by_get_kv_size_bytes"]


@cases("device_cell")
def test_device_cell(version: str, entry: str, figures: dict[str, Any]) -> None:
    dtype, backend, mtp, parts, split, role, hicache = entry.split("|")
    cp = int(parts.removeprefix("CP"))
    flags = flags_of(dtype, mtp == "mtp1", dsa_prefill_backend=backend, dsa_decode_backend=backend)
    flags |= {"disaggregation_mode": role.removeprefix("disagg="), "hicache_size": 1}
    flags["enable_hierarchical_cache"] = hicache == "hicache=True"
    if split == "split=True":
        flags |= layer_split_flags(dtype, mtp == "mtp1", cp) | {"enable_hierarchical_cache": hicache == "hicache=True"}
    plan = plan_of(version, flags, hbm_budget_bytes=50 << 30)
    device = plan.ranks[0].device
    assert device.bytes_per_token == figures["result"]["cell_bytes_per_token"]
    assert device.pool_tokens == figures["result"]["max_total_num_tokens_for_50GiB"]


@cases("kv_cache_dim")
def test_row_width(version: str, entry: str, figures: int) -> None:
    dtype, prefill, decode, role = entry.split("|")
    backends = (prefill.removeprefix("prefill="), decode.removeprefix("decode="))
    name = {"null": "unified"}.get(role.removeprefix("disagg="), role.removeprefix("disagg="))
    row = geometry.row_bytes(profile_for(version)[0], MODEL, DTYPES[dtype], name, *backends)
    assert row == figures * (2 if dtype == "bf16" else 1)


@cases("index_share")
def test_index_sharing_of_the_model(version: str, entry: str, figures: Any) -> None:
    full = MODEL.full_index_layers
    ours = {"freq": 4, "offset": 3, "full_layers": list(full), "num_full": len(full), "num_shared": 78 - len(full)}
    assert ours[entry] == figures


@cases("index_k_elided")
def test_index_sharing_on_the_device(version: str, entry: str, figures: bool) -> None:
    facts = dict(part.split("=") for part in entry.split("|"))
    shape = l1.DeviceShape(
        656,
        "fp8_e4m3",
        0,
        78,
        keeps_all_index=facts["hisparse"] == "True" or facts["draft"] == "True",
        hicache_or_pd=facts["hicache"] == "True" or facts["disagg"] != "null",
    )
    assert l1.index_elided(profile_for(version)[0], shape) == figures


@cases("dcp")
def test_dcp_widens_logical_tokens(version: str, entry: str, figures: dict[str, Any]) -> None:
    if not figures["ok"]:
        assert not profile_for(version)[0].dcp_in_host_pool
        return
    dtype, dcp, _ = entry.split("|")
    plan = plan_of(version, flags_of(dtype, dcp_size=int(dcp.removeprefix("dcp")), hicache_size=120))
    host = plan.ranks[0].host
    assert (host.tokens, host.logical_tokens) == (figures["tokens"], figures["logical_tokens"])
    assert (host.primary_bytes, host.indexer_allocated_bytes) == (
        figures["primary_bytes"],
        figures["indexer_bytes_allocated"],
    )


@cases("mtp_sidecar")
def test_draft_pool_of_its_own(version: str, entry: str, figures: dict[str, Any]) -> None:
    dtype, size = entry.split("|")
    profile = profile_for(version)[0]
    row = {"bf16": 1152, "fp8": 656}[dtype]
    target = geometry.page_aligned(geometry.requested_by_size(int(size.removesuffix("GB")), row * 78), 64)
    draft = geometry.sidecar_pool(profile, MODEL, DTYPES[dtype], row, 1, target)
    assert (target.tokens, draft.tokens, draft.row_bytes) == (
        figures["target_tokens"],
        figures["draft_tokens"],
        figures["draft_row_bytes"],
    )
    allocated = [draft.primary_bytes, draft.indexer_allocated_bytes]
    assert [size for size in allocated if size] == figures["allocated"]
    if not profile.mtp_packed:
        plan = plan_of(version, flags_of(dtype, True, hicache_size=int(size.removesuffix("GB"))))
        assert plan.ranks[0].host.draft_bytes == figures["allocated"][0]


def gate_passes(version: str, free: int, ranks: int = 1, stale: bool = False) -> bool:
    """One rank's two checks; the second sees its own primary resident unless the reading is stale."""
    profile = profile_for(version)[0]
    host = plan_of(version, flags_of("fp8", hicache_size=120)).ranks[0].host
    first = passes_check(profile, free, host.primary_bytes, ranks)
    return first and passes_check(profile, free if stale else free - host.primary_bytes, host.indexer_bytes, ranks)


@cases("gate")
def test_gate(version: str, entry: str, figures: dict[str, Any]) -> None:
    profile = profile_for(version)[0]
    primary = plan_of(version, flags_of("fp8", hicache_size=120)).ranks[0].host.primary_bytes
    free, passed = figures["available"], figures["ok"]
    if entry.startswith("live_total"):
        assert gate_passes(version, free) == passed
    elif entry.startswith("both_sum"):
        assert gate_passes(version, free, stale=True) == passed
    elif entry == "cgroup_headroom_minus_1":
        headroom = primary * 8 + RESERVE_BYTES - 1
        assert passes_check(profile, gate_free_bytes(profile, free, headroom), primary, 8) == passed
    else:
        ranks = 8 if "8 ranks" in entry else 1
        if entry.startswith("ranks_per_host"):
            ranks = int(entry.split("=")[1].split("|")[0])
        assert passes_check(profile, free, primary, ranks) == passed


@cases("prefetch")
def test_prefetch(version: str, entry: str, figures: Any) -> None:
    profile = profile_for(version)[0]
    if entry.startswith("unified_defaults"):
        assert [DEFAULT_THRESHOLD_TOKENS, UNIFIED.base_seconds, UNIFIED.per_1024_tokens_seconds] == figures
        return
    deadline: Deadline = HIRADIX if entry.startswith("HiRadix") else UNIFIED
    for tokens, seconds in figures.items():
        assert deadline.seconds(int(tokens) // 64 * 64) == seconds
    plan = plan_of(version, flags_of("fp8", hicache_size=16, hicache_storage_backend="file"))
    assert plan.l3.deadline_seconds == {tokens: UNIFIED.seconds(int(tokens) // 64 * 64) for tokens in figures}
    assert cache_class(profile, "dsa") == "UnifiedRadixCache"


NAMES = {
    "DeepSeek-V3.2": "deepseek-v3.2",
    "DeepSeek-V3/R1": "deepseek-v3",
    "Qwen3-32B": "qwen3-32b",
    "Llama-3.1-8B": "llama-3.1-8b",
}


@cases("fixed", OTHERS)
def test_other_models_by_size(version: str, entry: str, figures: dict[str, Any]) -> None:
    name, dtype, tp, page, *rest = entry.split("|")
    mtp, size = (rest[0] == "mtp1", rest[1]) if len(rest) == 2 else (False, rest[0])
    size_gb = int(size.removesuffix("GB"))
    if mtp and version == "0.5.18" and name == "DeepSeek-V3/R1":
        # HiRadixCache leaves the packed draft layer out, so only the constructor shows these figures.
        row = figures["row_bytes_per_token_per_layer"]
        page_size = int(page.removeprefix("page"))
        slots = geometry.page_aligned(geometry.requested_by_size(size_gb, row * 62), page_size)
        same_pools(geometry.host_pool(row, 62, 0, 0, page_size, slots), figures)
        return
    flags = flags_of(dtype, mtp, hicache_size=size_gb, tp_size=int(tp.removeprefix("tp")))
    flags["page_size"] = int(page.removeprefix("page"))
    same_pools(plan_of(version, flags, model=NAMES[name]).ranks[0].host, figures)


def test_plain_mla_draft_has_no_host_copy_on_hiradix() -> None:
    flags = flags_of("bf16", True, hicache_size=16, page_size=64)
    without = compute_plan(LaunchRequest(flags_of("bf16", hicache_size=16, page_size=64)), model="deepseek-v3")
    plan = compute_plan(LaunchRequest(flags), version="0.5.18", model="deepseek-v3")
    assert plan.ranks[0].host == without.ranks[0].host
    assert any(row.rule == "MTP + HiCache on HiRadixCache" for row in plan.eligibility)


@cases("ratio", OTHERS)
def test_other_models_by_ratio(version: str, entry: str, figures: dict[str, Any]) -> None:
    name, dtype, tp, page, device, ratio = entry.split("|")
    flags = flags_of(dtype, tp_size=int(tp.removeprefix("tp")), hicache_ratio=float(ratio.removeprefix("ratio=")))
    flags["page_size"] = int(page.removeprefix("page"))
    plan = plan_of(version, flags, model=NAMES[name], device_tokens=int(device.removeprefix("device=")))
    same_pools(plan.ranks[0].host, figures)


@cases("kv_heads_per_rank", OTHERS)
def test_heads_per_rank(version: str, entry: str, figures: dict[str, int]) -> None:
    for tp, heads in figures.items():
        row = geometry.row_bytes(
            profile_for(version)[0], model_named(NAMES[entry]), "bfloat16", "unified", "", "", int(tp)
        )
        assert row == 2 * heads * 128 * 2


@cases("page_legality", OTHERS)
def test_pages_that_a_pool_takes(version: str, entry: str, figures: Any) -> None:
    name, dtype, _, page = entry.split("|")
    size = int(page.removeprefix("page"))
    plan = plan_of(version, flags_of(dtype, page_size=size), model=NAMES[name])
    assert (plan.launch.page_size == size) == (figures is True)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["glm-5.2.json", "other-models.json"])
def test_figures_are_those_of_the_facts(shared: Path, name: str) -> None:
    folder = shared / "facts" / "ground-truth"
    if name == "other-models.json":
        documents = json.loads((folder / name).read_text())["versions"]
    else:
        documents = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("0.5.*.json"))}
    assert truth.merged(documents) == truth.load(name)


def test_gb_is_decimal() -> None:
    assert GB == 1_000_000_000
