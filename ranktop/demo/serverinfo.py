"""The JSON bodies of `/server_info`, `/model_info` and `/v1/loads`: a subset of 0.5.18's keys."""

from __future__ import annotations

from typing import Any

from ranktop.demo.gpus import GRAPH_GIB, kv_gib, startup_available_gib, weight_gib
from ranktop.demo.launch import (
    CONTEXT_TOKENS,
    DEVICE_TOKENS,
    HOST,
    MODEL_NAME,
    MODEL_PATH,
    PAGE_TOKENS,
    Launch,
)
from ranktop.demo.sizes import PoolSizes
from ranktop.demo.traffic import Step


def server_args(port: int, launch: Launch, differing: dict[str, object]) -> dict[str, Any]:
    """Resolved arguments. The keys are there because the real endpoint leaks them and ranktop must drop them."""
    return {
        "model_path": MODEL_PATH,
        "tokenizer_path": MODEL_PATH,
        "load_format": "auto",
        "trust_remote_code": False,
        "dtype": "auto",
        "quantization": None,
        "kv_cache_dtype": "fp8_e4m3",
        "mem_fraction_static": 0.85,
        "max_running_requests": None,
        "max_total_tokens": DEVICE_TOKENS,
        "chunked_prefill_size": 8192,
        "max_prefill_tokens": 16384,
        "schedule_policy": "fcfs",
        "page_size": PAGE_TOKENS,
        "disable_radix_cache": False,
        "disable_overlap_schedule": False,
        "nnodes": 1,
        "node_rank": 0,
        "tp_size": launch.tp_size,
        "dcp_size": 1,
        "pp_size": 1,
        "dp_size": 1,
        "ep_size": 1,
        "attn_cp_size": 1,
        "moe_dp_size": 1,
        "enable_prefill_cp": False,
        "cp_strategy": None,
        "enable_dsa_cache_layer_split": False,
        "enable_dp_attention": False,
        "device": "cuda",
        "base_gpu_id": 0,
        "gpu_id_step": 1,
        "numa_node": None,
        "host": HOST,
        "port": port,
        "api_key": "sk-DEMO-not-a-secret",
        "admin_api_key": "adm-DEMO-not-a-secret",
        "ssl_keyfile_password": None,
        "served_model_name": MODEL_NAME,
        "weight_version": "default",
        "enable_cache_report": True,
        "enable_metrics": True,
        "enable_metrics_for_all_schedulers": launch.all_schedulers,
        "decode_log_interval": 40,
        "attention_backend": "dsa",
        "dsa_prefill_backend": "flashmla_kv",
        "dsa_decode_backend": "flashmla_kv",
        "speculative_algorithm": None,
        "enable_hierarchical_cache": launch.hicache_gb is not None,
        "hicache_ratio": 2.0,
        "hicache_size": launch.hicache_gb or 0,
        "hicache_write_policy": "write_through",
        "hicache_io_backend": "kernel",
        "hicache_mem_layout": "page_first",
        "hicache_storage_backend": None,
        "hicache_storage_prefetch_policy": "timeout",
        "hicache_storage_backend_extra_config": None,
        "enable_hisparse": False,
        "enable_lmcache": False,
        "disaggregation_mode": "null",
        "disaggregation_transfer_backend": "mooncake",
        "disaggregation_bootstrap_port": 8998,
        "disaggregation_decode_retraction_backup": None,
        "optimistic_prefill_attempts": 0,
    } | differing


def server_info(args: dict[str, Any], version: str, sizes: PoolSizes, step: Step) -> dict[str, Any]:
    """`/server_info`: the arguments flat, and one internal state a DP rank with the arguments again."""
    startup = {"load_weight": 84.2, "kv_cache_allocation": 2.1, "scheduler_e2e": 171.9, "cuda_graph": {"decode": 21.7}}
    startup["tokenizer_e2e"] = 176.4
    memory = {
        "weight": weight_gib(0),
        "kvcache": round(kv_gib(sizes), 2),
        "startup_available": startup_available_gib(0, sizes),
        "token_capacity": DEVICE_TOKENS,
        "token_capacity_swa": None,
        "graph": {"prefill": 0.0, "decode": GRAPH_GIB},
    }
    state = args | {
        "last_gen_throughput": step.decode_tokens / step.seconds,
        "memory_usage": memory,
        "startup_time": startup,
        "effective_max_running_requests_per_dp": 48,
    }
    return args | {
        "status": "ready",
        "max_total_num_tokens": DEVICE_TOKENS,
        "max_req_input_len": DEVICE_TOKENS - 6,
        "startup_time": startup,
        "internal_states": [state],
        "version": version,
        "kv_events": None,
    }


def model_info() -> dict[str, Any]:
    """`/model_info`."""
    return {
        "model_path": MODEL_PATH,
        "tokenizer_path": MODEL_PATH,
        "served_model_name": MODEL_NAME,
        "is_generation": True,
        "weight_version": "default",
        "model_type": "glm_moe_dsa",
        "architectures": ["GlmMoeDsaForCausalLM"],
        "context_length": CONTEXT_TOKENS,
    }


def loads(launch: Launch, sizes: PoolSizes, step: Step, at_unix_seconds: float) -> dict[str, Any]:
    """`/v1/loads`: one entry, because there is one DP rank."""
    entry = {
        "timestamp": at_unix_seconds,
        "dp_rank": 0,
        "num_running_reqs": step.running,
        "num_waiting_reqs": step.queued,
        "num_used_tokens": step.used_tokens,
        "num_total_tokens": step.used_tokens,
        "max_total_num_tokens": DEVICE_TOKENS,
        "max_running_requests": 48,
        "token_usage": round(step.used_tokens / DEVICE_TOKENS, 2),
        "gen_throughput": step.decode_tokens / step.seconds,
        "cache_hit_rate": step.hit_rate,
        "utilization": 0.0,
        "memory": {
            "weight_gb": weight_gib(0),
            "kv_cache_gb": round(kv_gib(sizes), 2),
            "graph_gb": GRAPH_GIB,
            "token_capacity": DEVICE_TOKENS,
        },
    }
    return {
        "timestamp": at_unix_seconds,
        "version": launch.version,
        "accelerator": "NVIDIA H200 (simulated)",
        "num_accelerators": launch.gpus,
        "loads": [entry],
    }
