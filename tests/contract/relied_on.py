"""What ranktop relies on in SGLang beside metric families: arguments, their defaults, log kinds, titles, formats."""

from __future__ import annotations

from typing import Any

# Server arguments that the plan and the launch comparison read, with the default that an absent flag stands for.
# `...`: any default.
ARGUMENTS: dict[str, Any] = {
    "tp_size": 1,
    "pp_size": 1,
    "dp_size": 1,
    "ep_size": 1,
    "attn_cp_size": 1,
    "dcp_size": 1,
    "page_size": None,
    "kv_cache_dtype": "auto",
    "mem_fraction_static": None,
    "base_gpu_id": 0,
    "gpu_id_step": 1,
    "numa_node": None,
    "enable_hierarchical_cache": False,
    "hicache_ratio": None,
    "hicache_size": 0,
    "hicache_write_policy": "write_through",
    "hicache_io_backend": "kernel",
    "hicache_mem_layout": "page_first",
    "hicache_storage_backend": None,
    "hicache_storage_prefetch_policy": "timeout",
    "hicache_storage_backend_extra_config": None,
    "disaggregation_mode": "null",
    "disaggregation_transfer_backend": "mooncake",
    "disaggregation_bootstrap_port": 8998,
    "disaggregation_ib_device": None,
    "enable_dsa_cache_layer_split": False,
    "enable_prefill_cp": False,
    "cp_strategy": None,
    "enable_metrics": False,
    "enable_metrics_for_all_schedulers": False,
    "export_metrics_to_file": False,
    "export_metrics_to_file_dir": None,
    "decode_log_interval": 40,
    "speculative_algorithm": None,
    "api_key": None,
    "admin_api_key": None,
    "host": ...,
    "port": 30000,
}

# Kinds of log events that some template of the source must give.
LOG_KINDS: tuple[str, ...] = (
    *("weights_begin", "weights_end", "l1_pool", "memory_pool_end", "graph_begin", "graph_end", "capacity", "ready"),
    *("host_pool", "host_indexer", "host_pool_other", "host_pool_small", "host_pool_sync", "host_pool_failed"),
    *("pin_failed", "layer_plan", "layer_comm", "dcp", "rewritten", "jit_fallback", "tree_cache", "storage"),
    *("aborted_oom", "out_of_memory", "start_out_of_memory", "prefetch", "l3_error", "health_failed", "signal"),
    *("pd_failed", "pd_register_failed", "pd_register_gave_up", "pd_info_failed", "pd_lost", "pd_timeout"),
)
LOG_KINDS_SINCE: dict[str, str] = {
    "host_headroom": "0.5.21",
    "host_auto_size": "0.5.21",
    "prefetch_cap": "0.5.19",
    "host_dummy": "0.5.22",
}

# Texts of which a template must hold each: their lines are put together at run time.
TEXTS: tuple[str, ...] = (
    "[%(asctime)s{maybe_ms}{prefix}] %(message)s",
    "sglang::scheduler{prefix.replace(' ', '_')}",
    "sglang::detokenizer",
    "Prefill batch",
    "Decode batch",
    "#new-seq: ",
    "#cached-token: ",
    "#running-req: ",
    "#queue-req: ",
    "accept len: ",
    "cuda graph",
    "gen throughput (token/s): ",
    "KV cache pool is full. Retract requests. ",
    "Prefill server not fully registered yet",
    "sglang-request-metrics-{hour_suffix}.log",
)
TAG_WORDS: tuple[str, ...] = (" DP", " PP", " ATTN_CP", " MOE_DP", " TP", " EP")

# Labels that decide how a sample is read.
LABELS: dict[str, frozenset[str]] = {
    "sglang:cached_tokens_total": frozenset({"cache_source"}),
    "sglang:prefill_effective_tokens_total": frozenset({"mode"}),
    "sglang:realtime_tokens_total": frozenset({"mode"}),
    "sglang:graph_memory_usage_gb": frozenset({"phase"}),
    "sglang:hicache_backup_tokens_total": frozenset({"pool"}),
    "sglang:load_back_tokens_total": frozenset({"pool"}),
    "sglang:hicache_dropped_tokens_total": frozenset({"reason", "pool"}),
}
