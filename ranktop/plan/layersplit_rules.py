"""Eligibility of `--enable-dsa-cache-layer-split`, in SGLang's order of checking (0.5.16 to 0.5.23)."""

from __future__ import annotations

from ranktop.plan.rule import Case, Rule

_FLAG = "--enable-dsa-cache-layer-split"
_UNSHARDED_BACKUP = (
    "Layer-sharded DSA indexer HiCache backup with page_first layout is not supported without a per-layer "
    "LF->PF kernel."
)


def _asked(case: Case) -> bool:
    return case.args.enable_dsa_cache_layer_split


def _eligible(case: Case) -> bool:
    args = case.args
    return (
        _asked(case)
        and case.model.attention == "dsa"
        and args.role == "prefill"
        and args.enable_prefill_cp
        and args.cp_strategy == "interleave"
        and args.disaggregation_transfer_backend == "mooncake"
        and args.pp_size == 1
        and not args.enable_kv_cache_sharding
    )


def _splits(case: Case) -> bool:
    return _eligible(case) and case.args.attn_cp_size > 1


def _without_interleave(case: Case) -> bool:
    return _asked(case) and not (case.args.enable_prefill_cp and case.args.cp_strategy == "interleave")


LAYER_SPLIT_RULES = (
    Rule(
        "LayerSplit without DSA",
        "rejected",
        f"{_FLAG} is only supported for DSA (DeepSeek Sparse Attention) models.",
        lambda case: _asked(case) and case.model.attention != "dsa",
    ),
    Rule(
        "LayerSplit on a decode worker",
        "rejected",
        f"{_FLAG} is not supported on decode workers. Remove it there: decode keeps an ordinary full cache.",
        lambda case: _asked(case) and case.args.role == "decode",
    ),
    Rule(
        "LayerSplit on a unified worker",
        "rejected",
        f"{_FLAG} is only supported on PD prefill workers. Non-PD workers also run decode and require ordinary local "
        "decode cache semantics.",
        lambda case: _asked(case) and case.args.role == "unified",
    ),
    Rule(
        "LayerSplit without interleaved prefill CP",
        "rejected",
        f"{_FLAG} requires --enable-prefill-cp and --cp-strategy interleave (or legacy "
        "--enable-nsa-prefill-context-parallel with --nsa-prefill-cp-mode round-robin-split).",
        _without_interleave,
        until="0.5.19",
    ),
    Rule(
        "LayerSplit without interleaved prefill CP",
        "rejected",
        f"{_FLAG} requires --enable-prefill-cp and --cp-strategy interleave.",
        _without_interleave,
        since="0.5.20",
    ),
    Rule(
        "LayerSplit without Mooncake",
        "rejected",
        f"{_FLAG} currently only supports the mooncake transfer backend (mooncake / mooncake_tcp).",
        lambda case: _asked(case) and case.args.disaggregation_transfer_backend != "mooncake",
    ),
    Rule(
        "LayerSplit with pipeline parallelism",
        "rejected",
        f"{_FLAG} is not supported with pipeline parallelism (pp_size > 1) yet.",
        lambda case: _asked(case) and case.args.pp_size > 1,
    ),
    Rule(
        "LayerSplit with KV cache sharding",
        "rejected",
        f"{_FLAG} and --enable-kv-cache-sharding exclude each other.",
        lambda case: _asked(case) and case.args.enable_kv_cache_sharding,
        since="0.5.22",
    ),
    Rule(
        "LayerSplit at CP1",
        "ignored",
        "the attention CP size resolves to 1: every rank keeps all layers, nothing is saved and nothing is logged",
        lambda case: _eligible(case) and case.args.attn_cp_size == 1,
    ),
    Rule(
        "LayerSplit on a PD prefill worker",
        "accepted",
        "DSA, prefill, interleaved CP, Mooncake, PP1: each rank owns a range of layers and one scratch layer",
        _splits,
    ),
    Rule(
        "LayerSplit with MTP",
        "accepted",
        "the draft worker is exempt and keeps a full cache",
        lambda case: _splits(case) and case.args.is_draft_nextn,
    ),
    Rule(
        "LayerSplit + HiCache, layout other than layer_first",
        "accepted",
        f"passes startup and fails at the first backup: {_UNSHARDED_BACKUP} Only layer_first works.",
        lambda case: (
            _splits(case)
            and case.args.enable_hierarchical_cache
            and case.args.hicache_storage_backend != "mooncake"
            and case.args.hicache_mem_layout != "layer_first"
        ),
        finding="PLAN-FAILS-LATER",
    ),
    Rule(
        "LayerSplit + HiCache + Mooncake storage",
        "accepted",
        "passes startup and fails at the first backup: a sharded indexer needs layer_first, which Mooncake storage "
        "rewrites to page_first; no layout works.",
        lambda case: (
            _splits(case) and case.args.enable_hierarchical_cache and case.args.hicache_storage_backend == "mooncake"
        ),
        finding="PLAN-FAILS-LATER",
    ),
)
