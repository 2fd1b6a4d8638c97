"""Eligibility of parallel layouts: replicas over nodes, pipeline stages, prefill and decode context parallelism."""

from __future__ import annotations

from ranktop.plan.rule import Case, Rule


def _dcp_hicache(case: Case) -> bool:
    return case.args.dcp_size > 1 and case.args.enable_hierarchical_cache


def _dsa_dcp(case: Case) -> bool:
    return case.args.dcp_size > 1 and case.model.attention == "dsa"


def _replicas_over_nodes(case: Case) -> bool:
    return case.args.dp_size > 1 and case.args.attn_dp_size == 1 and case.args.nnodes > 1


def _staged_speculation(case: Case) -> bool:
    return case.args.pp_size > 1 and case.args.speculative_algorithm is not None


_L3_WITH_DCP = (
    "--hicache-storage-backend (L3) with --dcp-size > 1 is not supported yet. Run HiCache+DCP with L1/L2 only."
)

PARALLEL_RULES = (
    Rule(
        "replicas over several nodes",
        "rejected",
        "multi-node data parallel is not supported unless dp attention!",
        _replicas_over_nodes,
        until="0.5.21",
    ),
    Rule(
        "replicas over several nodes",
        "rejected",
        "multi-node data-parallel replicas are not supported; use attention DP (--attn-dp-size) across nodes",
        _replicas_over_nodes,
        since="0.5.22",
    ),
    Rule(
        "pipeline parallelism with speculation",
        "rejected",
        "Pipeline parallelism is not compatible with overlap schedule, speculative decoding",
        _staged_speculation,
        until="0.5.20",
    ),
    Rule(
        "pipeline parallelism with speculation",
        "rejected",
        "Pipeline parallelism currently only supports EAGLE (non-multi-layer) speculative decoding",
        lambda case: (
            _staged_speculation(case)
            and not case.args.is_draft_nextn
            and not (case.args.speculative_algorithm == "DSPARK" and case.args.role == "prefill")
        ),
        since="0.5.21",
    ),
    Rule(
        "prefill CP without a strategy",
        "rejected",
        "--cp-strategy must be set when --enable-prefill-cp is enabled.",
        lambda case: case.args.enable_prefill_cp and case.args.cp_strategy is None,
    ),
    Rule(
        "prefill CP on a decode worker",
        "rejected",
        "prefill context parallelism is refused on decode workers",
        lambda case: case.args.enable_prefill_cp and case.args.role == "decode",
    ),
    Rule(
        "interleaved prefill CP with DP",
        "rejected",
        "interleaved prefill CP requires --dp-size 1",
        lambda case: (
            case.args.enable_prefill_cp
            and case.args.cp_strategy == "interleave"
            and max(case.args.dp_size, case.args.attn_dp_size) > 1
        ),
        until="0.5.21",
    ),
    Rule(
        "interleaved prefill CP with more than 8 TP ranks",
        "rejected",
        "interleaved prefill CP requires --tp-size of at most 8",
        lambda case: case.args.enable_prefill_cp and case.args.cp_strategy == "interleave" and case.args.tp_size > 8,
    ),
    Rule(
        "DCP with prefill CP",
        "rejected",
        "--dcp-size > 1 does not support --enable-prefill-cp.",
        lambda case: case.args.dcp_size > 1 and case.args.enable_prefill_cp,
        since="0.5.23",
    ),
    Rule(
        "DSA + DCP + HiCache or HiSparse",
        "rejected",
        "DSA DCP does not support HiSparse or HiCache.",
        lambda case: _dsa_dcp(case) and (case.args.enable_hierarchical_cache or case.args.enable_hisparse),
        since="0.5.22",
    ),
    Rule(
        "DSA + DCP + PD",
        "rejected",
        "DSA DCP does not support PD disaggregation.",
        lambda case: _dsa_dcp(case) and case.args.role != "unified",
        since="0.5.22",
    ),
    Rule(
        "DSA + DCP + EAGLE top-k",
        "rejected",
        "DSA DCP requires --speculative-eagle-topk 1",
        lambda case: _dsa_dcp(case) and (case.args.speculative_eagle_topk or 1) > 1,
        since="0.5.22",
    ),
    Rule(
        "DSA + DCP + HiCache",
        "untested",
        "no guard in this version, but the indexer's host pool is not DCP-aware and its indices are not translated: "
        "treat as unsupported (refused from 0.5.22 on)",
        lambda case: _dsa_dcp(case) and case.args.enable_hierarchical_cache,
        until="0.5.21",
    ),
    Rule(
        "DCP + HiCache",
        "untested",
        "not checked in this version, and the host pool is not DCP-aware",
        lambda case: _dcp_hicache(case) and case.model.attention != "dsa",
        until="0.5.16",
    ),
    Rule(
        "DCP + HiCache, L1 and L2 only",
        "accepted",
        "DCP with HiCache keeps to L1 and L2",
        lambda case: _dcp_hicache(case) and case.model.attention == "mla" and case.args.hicache_storage_backend is None,
        since="0.5.17",
    ),
    Rule(
        "DCP + HiCache + L3",
        "rejected",
        _L3_WITH_DCP,
        lambda case: _dcp_hicache(case) and case.args.hicache_storage_backend is not None,
        since="0.5.17",
        until="0.5.22",
    ),
    Rule(
        "DCP + HiCache + L3, buffer_only",
        "rejected",
        "HiCache L3 with DCP does not support buffer_only host memory.",
        lambda case: (
            _dcp_hicache(case)
            and case.args.hicache_storage_backend is not None
            and case.args.hicache_host_memory_mode == "buffer_only"
        ),
        since="0.5.23",
    ),
    Rule(
        "DCP + HiCache + L3",
        "accepted",
        "DCP with HiCache and L3 is taken for plain MLA models in cache mode",
        lambda case: (
            _dcp_hicache(case)
            and case.model.attention == "mla"
            and case.args.hicache_storage_backend is not None
            and case.args.hicache_host_memory_mode == "cache"
        ),
        since="0.5.23",
    ),
    Rule(
        "DCP + HiCache + speculation",
        "rejected",
        "HiCache with --dcp-size > 1 supports no speculative decoding",
        lambda case: _dcp_hicache(case) and case.args.speculative_algorithm is not None,
        since="0.5.17",
        until="0.5.17",
    ),
    Rule(
        "DCP + HiCache + speculation",
        "rejected",
        "HiCache with --dcp-size > 1 supports no speculative decoding but DSPARK",
        lambda case: _dcp_hicache(case) and case.args.speculative_algorithm not in (None, "DSPARK"),
        since="0.5.18",
    ),
    Rule(
        "DCP + HiCache + LMCache",
        "rejected",
        "HiCache with --dcp-size > 1 does not support LMCache",
        lambda case: _dcp_hicache(case) and case.args.enable_lmcache,
        since="0.5.17",
    ),
    Rule(
        "DCP + HiCache + HiSparse",
        "rejected",
        "HiCache with --dcp-size > 1 does not support HiSparse",
        lambda case: _dcp_hicache(case) and case.args.enable_hisparse,
        since="0.5.17",
    ),
    Rule(
        "DCP + HiCache without MLA",
        "rejected",
        "HiCache with --dcp-size > 1 needs an MLA model",
        lambda case: _dcp_hicache(case) and case.model.attention == "gqa",
        since="0.5.17",
    ),
    Rule(
        "DCP on a PD decode worker",
        "rejected",
        "PD decode with --dcp-size > 1 runs on the chunk cache, without HiCache",
        lambda case: _dcp_hicache(case) and case.args.role == "decode",
        since="0.5.17",
        until="0.5.20",
    ),
)
