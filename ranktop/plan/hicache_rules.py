"""Eligibility of HiCache with other features (0.5.16 to 0.5.23)."""

from __future__ import annotations

from ranktop.plan.rule import Case, Rule


def _on(case: Case) -> bool:
    return case.args.enable_hierarchical_cache


def _has_l3(case: Case) -> bool:
    return _on(case) and case.args.hicache_storage_backend is not None


def _sharding(case: Case) -> bool:
    return _on(case) and case.args.enable_kv_cache_sharding


def _buffer_only(case: Case) -> bool:
    return _on(case) and case.args.hicache_host_memory_mode == "buffer_only"


def _plain(case: Case) -> bool:
    args = case.args
    return (
        _on(case)
        and not args.disable_radix_cache
        and args.speculative_algorithm is None
        and args.dcp_size == 1
        and not args.enable_lmcache
        and not args.enable_hisparse
    )


HICACHE_RULES = (
    Rule(
        "HiCache without radix cache",
        "rejected",
        "--enable-hierarchical-cache and --disable-radix-cache exclude each other",
        lambda case: _on(case) and case.args.disable_radix_cache,
    ),
    Rule(
        "HiCache + HiSparse",
        "rejected",
        "HiSparse needs the radix cache off, which HiCache refuses",
        lambda case: _on(case) and case.args.enable_hisparse,
    ),
    Rule(
        "HiCache + LMCache",
        "ignored",
        "HiCache wins and --enable-lmcache does nothing",
        lambda case: _on(case) and case.args.enable_lmcache,
        until="0.5.18",
    ),
    Rule(
        "HiCache + LMCache",
        "ignored",
        "LMCache wins by registration order and HiCache does nothing (read in the source, not run)",
        lambda case: _on(case) and case.args.enable_lmcache,
        since="0.5.19",
        until="0.5.20",
    ),
    Rule(
        "HiCache + LMCache",
        "rejected",
        "--enable-hierarchical-cache and --enable-lmcache exclude each other",
        lambda case: _on(case) and case.args.enable_lmcache,
        since="0.5.21",
    ),
    Rule(
        "HiCache + unified memory",
        "rejected",
        "--enable-unified-memory asserts that HiCache is off",
        lambda case: _on(case) and case.args.enable_unified_memory,
        until="0.5.20",
    ),
    Rule(
        "HiCache + unified memory",
        "untested",
        "the assertion of earlier versions is gone; what the pools do was not checked",
        lambda case: _on(case) and case.args.enable_unified_memory,
        since="0.5.21",
    ),
    Rule(
        "HiCache + external linker",
        "rejected",
        "--enable-unified-cache-external-linker and HiCache exclude each other",
        lambda case: _on(case) and case.args.enable_unified_cache_external_linker,
        since="0.5.20",
    ),
    Rule(
        "HiCache + KV cache sharding",
        "rejected",
        "--enable-kv-cache-sharding excludes HiCache in this version",
        _sharding,
        since="0.5.22",
        until="0.5.22",
    ),
    Rule(
        "HiCache + KV cache sharding + L3",
        "rejected",
        "--enable-kv-cache-sharding takes HiCache without L3 only",
        lambda case: _sharding(case) and case.args.hicache_storage_backend is not None,
        since="0.5.23",
    ),
    Rule(
        "HiCache + KV cache sharding, DSA",
        "rejected",
        "for DSA models --enable-kv-cache-sharding takes HiCache only with host memory mode cache, kernel copies and "
        "layout layer_first or page_first",
        lambda case: (
            _sharding(case)
            and case.model.attention == "dsa"
            and not (
                case.args.hicache_host_memory_mode == "cache"
                and case.args.hicache_io_backend == "kernel"
                and case.args.hicache_mem_layout in ("layer_first", "page_first")
            )
        ),
        since="0.5.23",
    ),
    Rule(
        "two-batch overlap + index sharing",
        "rejected",
        "--enable-two-batch-overlap does not support models whose layers share an index",
        lambda case: case.args.enable_two_batch_overlap and bool(case.model.full_index_layers),
    ),
    Rule(
        "decode offload off the decode role",
        "rejected",
        "--disaggregation-decode-enable-offload-kvcache needs --disaggregation-mode decode",
        lambda case: case.args.disaggregation_decode_enable_offload_kvcache and case.args.role != "decode",
    ),
    Rule(
        "decode offload without L3",
        "rejected",
        "--disaggregation-decode-enable-offload-kvcache needs --hicache-storage-backend",
        lambda case: (
            case.args.disaggregation_decode_enable_offload_kvcache and case.args.hicache_storage_backend is None
        ),
    ),
    Rule(
        "buffer_only without L3",
        "rejected",
        "--hicache-host-memory-mode buffer_only needs --hicache-storage-backend",
        lambda case: _buffer_only(case) and case.args.hicache_storage_backend is None,
        since="0.5.19",
    ),
    Rule(
        "buffer_only on a decode worker",
        "rejected",
        "--hicache-host-memory-mode buffer_only is refused on decode workers",
        lambda case: _buffer_only(case) and case.args.role == "decode",
        since="0.5.19",
    ),
    Rule(
        "buffer_only + write_back",
        "rejected",
        "--hicache-host-memory-mode buffer_only does not take write_back",
        lambda case: _buffer_only(case) and case.args.hicache_write_policy == "write_back",
        since="0.5.19",
        until="0.5.21",
    ),
    Rule(
        "FP4 KV cache",
        "rejected",
        "--kv-cache-dtype fp4_e2m1 is gone since 0.5.21",
        lambda case: case.args.kv_cache_dtype == "fp4_e2m1",
        since="0.5.21",
    ),
    Rule(
        "MTP + HiCache on HiRadixCache",
        "untested",
        "draft pools are planned as packed, and HiRadixCache ignores them: the draft's KV has no host copy (0.5.18)",
        lambda case: (
            _on(case)
            and case.args.is_draft_nextn
            and case.model.mtp_layers > 0
            and case.profile.mtp_packed
            and case.profile.plain_tree == "HiRadixCache"
            and case.model.attention != "dsa"
        ),
    ),
    Rule(
        "MTP + HiCache, draft indexer",
        "untested",
        "the draft's index keys have no host copy; its FP8 rows are 576 bytes on the host, 656 on the device",
        lambda case: _on(case) and case.args.is_draft_nextn and case.model.attention == "dsa",
        until="0.5.17",
    ),
    Rule(
        "MTP + HiCache",
        "accepted",
        "packed draft layers move with the target; the audit adds MTP last, with acceptance-length gates",
        lambda case: _on(case) and case.args.is_draft_nextn and case.model.attention == "dsa",
        since="0.5.18",
    ),
    Rule(
        "speculation with a draft model of its own + HiCache",
        "untested",
        "the draft's host pool depends on the draft model's own config; the plan leaves it out",
        lambda case: (
            _on(case)
            and case.args.speculative_algorithm is not None
            and not case.args.is_draft_nextn
            and case.args.speculative_algorithm != "NGRAM"
        ),
    ),
    Rule(
        "speculation + pipeline parallelism",
        "untested",
        "which stage holds the draft layers was not checked; the plan counts them on every stage",
        lambda case: case.args.pp_size > 1 and case.args.is_draft_nextn,
        since="0.5.21",
    ),
    Rule(
        "L1 + L2, radix on, MTP off",
        "accepted",
        "the supported baseline; the audit's first pilot",
        lambda case: _plain(case) and not _has_l3(case),
    ),
    Rule(
        "L1 + L2 + L3, DCP1",
        "accepted",
        "supported with a configured backend; the audit's second pilot, after L2 alone has passed",
        lambda case: _plain(case) and _has_l3(case),
    ),
    Rule(
        "optimistic prefill + HiCache",
        "accepted",
        "a narrow combination that stays on; isolate it as an experiment of its own",
        lambda case: _on(case) and case.args.role == "prefill" and case.args.optimistic_prefill_attempts > 0,
    ),
)
