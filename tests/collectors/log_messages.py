"""Every wording of SGLang's log lines, old and new: the message, its kind, its fields."""

from __future__ import annotations

from typing import Any

MESSAGES: list[tuple[str, str, dict[str, Any]]] = [
    ("Init torch distributed begin.", "dist_begin", {}),
    (
        "Init torch distributed ends. elapsed=11.20 s, mem usage=1.07 GB",
        "dist_end",
        {"elapsed_seconds": 11.2, "used_gib": 1.07},
    ),
    ("Load weight begin. avail mem=138.21 GB", "weights_begin", {"avail_gib": 138.21}),
    (
        "Load weight end. elapsed=84.20 s, type=GlmMoeDsaForCausalLM, quant=fp8, fmt=e4m3, avail mem=46.80 GB, "
        "mem usage=91.41 GB.",
        "weights_end",
        {"elapsed_seconds": 84.2, "model": "GlmMoeDsaForCausalLM", "avail_gib": 46.8, "used_gib": 91.41},
    ),
    (
        "Load weight end. elapsed=2.01 s, type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=36.61 GB, "
        "mem usage=7.56 GB.",
        "weights_end",
        {"elapsed_seconds": 2.01, "model": "Qwen3ForCausalLM", "avail_gib": 36.61, "used_gib": 7.56},
    ),
    (
        "KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 432000, KV size: 24.73 GB",
        "l1_pool",
        {"dtype": "torch.float8_e4m3fn", "tokens": 432000, "size_gib": 24.73},
    ),
    (
        "KV Cache is allocated. #tokens: 105600, K size: 7.26 GB, V size: 7.26 GB",
        "l1_pool",
        {"tokens": 105600, "k_gib": 7.26, "v_gib": 7.26},
    ),
    (
        "SWA KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 1024, KV size: 1.00 GB",
        "l1_pool",
        {"label": "SWA", "dtype": "torch.bfloat16", "bound_tokens": 1024},
    ),
    (
        "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 1024, KV size: 1.00 GB, "
        "avail mem=5.00 GB",
        "l1_pool",
        {"dtype": "torch.bfloat16", "tokens": 1024, "size_gib": 1.0, "avail_gib": 5.0},
    ),
    (
        "Post-capture KV sizing: draft KV cache allocated. dtype: torch.bfloat16, #tokens: 1024, KV size: 0.25 GB",
        "l1_pool",
        {"label": "draft", "dtype": "torch.bfloat16", "tokens": 1024, "size_gib": 0.25},
    ),
    ("Memory pool end. avail mem=21.17 GB", "memory_pool_end", {"avail_gib": 21.17}),
    (
        "Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=4, bs=[1, 2], avail mem=19.27 GB",
        "graph_begin",
        {"phase": "target verify", "avail_gib": 19.27},
    ),
    (
        "Capture target verify CUDA graph end. bs=[1, 2], elapsed=21.70 s, mem usage=1.86 GB, avail mem=17.41 GB.",
        "graph_end",
        {"phase": "target verify", "elapsed_seconds": 21.7, "used_gib": 1.86, "avail_gib": 17.41},
    ),
    (
        "max_total_num_tokens=432000, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=48, "
        "context_len=202752, available_gpu_mem=16.88 GB",
        "capacity",
        {
            "tokens": 432000,
            "chunked_prefill_tokens": 8192,
            "max_prefill_tokens": 16384,
            "max_running_requests": 48,
            "context_tokens": 202752,
            "avail_gib": 16.88,
        },
    ),
    ("max_total_num_tokens=1547424", "capacity", {"tokens": 1547424}),
    ("Allocating 96.00 GB host memory for hierarchical KV cache.", "host_pool", {"size_gb": 96.0}),
    (
        "Allocating kv hierarchical KV host pool: 2345216 tokens, 120.00 GB host memory.",
        "host_pool",
        {"label": "kv", "tokens": 2345216, "size_gb": 120.0},
    ),
    (
        "Allocating kv hierarchical KV host pool: 2315584 tokens, 120.00 GB host memory, packed MTP KV layers: "
        "target_layers=78, draft_layers=1, total_layers=79.",
        "host_pool",
        {
            "label": "kv",
            "tokens": 2315584,
            "size_gb": 120.0,
            "target_layers": 78,
            "draft_layers": 1,
            "total_layers": 79,
        },
    ),
    (
        "Allocating 24.15 GB host memory for DSA indexer (layout=page_first).",
        "host_indexer",
        {"size_gb": 24.15, "layout": "page_first"},
    ),
    (
        "Allocating 6.50 GB host memory for DSA indexer (layout=page_first_direct), packed MTP layers: "
        "target_layers=21, draft_layers=1, total_layers=22.",
        "host_indexer",
        {
            "size_gb": 6.5,
            "layout": "page_first_direct",
            "target_layers": 21,
            "draft_layers": 1,
            "total_layers": 22,
        },
    ),
    (
        "Allocating 0.03 GB host memory for V4 paged pool 'deepseek_v4_c128' (layers=31, pages=614, item_bytes=1728).",
        "host_pool_other",
        {
            "size_gb": 0.03,
            "label": "V4 paged pool 'deepseek_v4_c128'",
            "detail": "layers=31, pages=614, item_bytes=1728",
        },
    ),
    (
        "Allocating 12.00 GB host memory for hierarchical Mamba cache (565 state slots, layout=page_first).",
        "host_pool_other",
        {"size_gb": 12.0, "label": "hierarchical Mamba cache", "detail": "565 state slots, layout=page_first"},
    ),
    (
        "HiCache kv host pool (385984 tokens) is smaller than the device pool (700000 tokens);L2 cache effectiveness",
        "host_pool_small",
        {"label": "kv", "host_tokens": 385984, "device_tokens": 700000},
    ),
    (
        "HiCache host KV pool (385984 tokens) is smaller than the device pool (700000 tokens)",
        "host_pool_small",
        {"host_tokens": 385984, "device_tokens": 700000},
    ),
    (
        "Sync fixed-size HiCache host token capacity from 2000 to 1900.",
        "host_pool_sync",
        {"asked_tokens": 2000, "tokens": 1900},
    ),
    (
        "ValueError: Not enough host memory available. Requesting 40.00 GB but only have 44.87 GB free. Please reduce "
        "the size of the hierarchical cache.",
        "host_pool_failed",
        {"asked_gb": 40.0, "free_gb": 44.87},
    ),
    (
        "ValueError: Not enough host memory for DSA indexer hierarchical cache. Requesting 24.15 GB but only have "
        "-1.20 GB free. Please reduce the size of the hierarchical cache.",
        "host_pool_failed",
        {"label": "DSA indexer hierarchical cache", "asked_gb": 24.15, "free_gb": -1.2},
    ),
    (
        "RuntimeError: cudaHostRegister failed (rc=1, invalid argument) for ptr=0x6f6388400000 size=531470745600; "
        "host buffer is not pinned",
        "pin_failed",
        {"rc": 1, "reason": "invalid argument", "size_bytes": 531470745600},
    ),
    (
        "HiCache memory headroom: host 1400.5 GiB, cgroup 380.0 GiB",
        "host_headroom",
        {"host_gib": 1400.5, "cgroup_gib": 380.0},
    ),
    (
        "HiCache auto-sizing: ratio 2.00 -> 1.37; 101.50 GiB host memory per rank (fraction 0.80, 8 ranks on this "
        "host), host pools 812.00 GiB.",
        "host_auto_size",
        {
            "asked_ratio": 2.0,
            "ratio": 1.37,
            "rank_gib": 101.5,
            "fraction_ratio": 0.8,
            "ranks": 8,
            "pools_gib": 812.0,
        },
    ),
    (
        "MLATokenToKVPoolHost dummy mode: allocator-only, size=2345216 tokens, saving 120.00 GB host memory",
        "host_dummy",
        {"tokens": 2345216, "saved_gb": 120.0},
    ),
    (
        "Layer shard plan (continuous): layer_num=78, shard_size=4, rank=2, local=[40,59), global=[40,59), "
        "partitions=r0:[0,20); r1:[20,40); r2:[40,59); r3:[59,78)",
        "layer_plan",
        {
            "style": "continuous",
            "layers": 78,
            "ranks": 4,
            "cp_rank": 2,
            "local_start": 40,
            "local_end": 59,
            "start": 40,
            "end": 59,
            "partitions": "r0:[0,20); r1:[20,40); r2:[40,59); r3:[59,78)",
        },
    ),
    (
        "Initialized dedicated layer-shard broadcast NCCL communicator: rank=3, world_size=4",
        "layer_comm",
        {"cp_rank": 3, "ranks": 4},
    ),
    ("HiCache + DCP enabled (L1/L2 only): x (dcp_size=2).", "dcp", {"dcp_size": 2}),
    ("Page first layout is not supported with direct IO backend, switching to page first direct", "rewritten", {}),
    (
        "WARNING:sglang.srt.arg_groups.overrides:Setting page size to 64 for DeepSeek DSA.",
        "rewritten",
        {"page_tokens": 64},
    ),
    (
        "KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: 4306, #new_token_ratio: "
        "0.3921 -> 0.7012",
        "retract",
        {"requests": 1, "gained_tokens": 4306, "ratio_before": 0.3921, "ratio_after": 0.7012},
    ),
    ("retract_decode: aborted last request 8f1d due to OOM", "aborted_oom", {"rid": "8f1d"}),
    ("Decode out of memory. Try to lower your batch size.", "out_of_memory", {"phase": "Decode"}),
    ("Try to allocate 8192 tokens.", "out_of_memory", {"asked_tokens": 8192}),
    (
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. [ Current value: "
        "mem_fraction_static=0.81 ]",
        "start_out_of_memory",
        {"fraction_ratio": 0.81},
    ),
    (
        "HiCache prefetch success req=8f1d0c completed_local=6400 completed_synced=6300 matched=0 loaded=6200 "
        "released=64 occupied=3",
        "prefetch",
        {
            "outcome": "success",
            "rid": "8f1d0c",
            "local_tokens": 6400,
            "completed_tokens": 6300,
            "matched_tokens": 0,
            "loaded_tokens": 6200,
            "released_tokens": 64,
            "occupied_tokens": 3,
        },
    ),
    (
        "HiCache prefetch dropped req=123 completed=6400 matched=0 loaded=0 occupied=0",
        "prefetch",
        {
            "outcome": "dropped",
            "rid": "123",
            "completed_tokens": 6400,
            "matched_tokens": 0,
            "loaded_tokens": 0,
            "occupied_tokens": 0,
        },
    ),
    ("Prefetch 96fb5efb completed with 0 tokens", "prefetch", {"rid": "96fb5efb", "loaded_tokens": 0}),
    (
        "HiCache prefetch declined req=a reason=unservable_prefix device_prefix=3 hit=4",
        "prefetch_declined",
        {"rid": "a", "reason": "unservable_prefix"},
    ),
    (
        "HiCache storage prefetch reissue cap reached req=a attempts=8; the request is admitted",
        "prefetch_cap",
        {"rid": "a", "attempts": 8},
    ),
    ("Prefetch operation a failed to retrieve page 77.", "l3_error", {"rid": "a"}),
    (
        "HiCache L3 prefetch failed for rid=a: broken; falling back to L2-only LoadingBack",
        "l3_error",
        {"rid": "a", "reason": "broken"},
    ),
    ("HiCache backup failed after 640 tokens", "l3_error", {"completed_tokens": 640}),
    ("Creating storage backend 'mooncake' (sglang.srt.x.MooncakeStore)", "storage", {"backend": "mooncake"}),
    (
        "Tree cache initialized: source=registry impl=UnifiedRadixCache page_size=64",
        "tree_cache",
        {"class": "UnifiedRadixCache"},
    ),
    (
        "Decode transfer failed for request rank=5 decode_req.req.rid='c3' decode_req.req.bootstrap_room=4411 with "
        "exception KVTransferError(bootstrap_room=4411): Lost connection with prefill instance",
        "pd_failed",
        {
            "side": "Decode",
            "phase": "transfer",
            "tp_rank": 5,
            "rid": "c3",
            "room": 4411,
            "reason": "Lost connection with prefill instance",
        },
    ),
    (
        "Prefill bootstrap failed for request rank=2 req.rid='d3' req.bootstrap_room=5975098084415727586",
        "pd_failed",
        {"side": "Prefill", "phase": "bootstrap", "tp_rank": 2, "rid": "d3", "room": 5975098084415727586},
    ),
    (
        "Prefill register attempt 3/5 failed: status 503",
        "pd_register_failed",
        {"attempt": 3, "attempts": 5, "reason": "status 503"},
    ),
    (
        "Prefill instance failed to register to bootstrap server after 5 retries",
        "pd_register_gave_up",
        {"attempts": 5},
    ),
    ("Failed to get prefill server info: 503, Prefill server not fully", "pd_info_failed", {"status": 503}),
    ("Lost connection with prefill instance (bootstrap_addr: a:1), 3", "pd_lost", {"address": "a:1"}),
    (
        "Request 5975 timed out after 300.0s in KVPoll.Bootstrapping",
        "pd_timeout",
        {"room": 5975, "elapsed_seconds": 300.0, "phase": "Bootstrapping"},
    ),
    ("Some requests timed out when bootstrapping, which means", "pd_timeout", {"phase": "bootstrapping"}),
    ("Health check failed. Server couldn't get a response from detokenizer", "health_failed", {}),
    (
        "SIGTERM received. signum=15 frame=None. Draining requests and shutting down...",
        "signal",
        {"signal": "SIGTERM"},
    ),
    ("SIGQUIT received. signum=3, frame=None. It usually means one child failed.", "signal", {"signal": "SIGQUIT"}),
    ("The server is fired up and ready to roll!", "ready", {}),
    (
        "Unsupported element_size = 656 for JIT HiCache kernel",
        "jit_fallback",
        {"row_bytes": 656, "label": ""},
    ),
    (
        "Unsupported element_size = 656 for staged JIT HiCache kernel",
        "jit_fallback",
        {"row_bytes": 656, "label": "staged "},
    ),
    ("set_mempolicy: Operation not permitted", "numa_failed", {"reason": "Operation not permitted"}),
    (
        "I20250516 09:00:52.240196 45697 transfer_engine.cpp:127] Topology discovery complete. Found 0 HCAs.",
        "transport",
        {"hcas": 0},
    ),
    (
        "W20250516 09:00:52.240088 45697 topology.cpp:55] No RDMA devices found, check your device installation",
        "transport",
        {"label": "No RDMA devices found"},
    ),
    (
        "E0511 07:42:36.355509 10240 rdma_context.cpp:198] Failed to register memory 0x2e1cbac200: Bad address [14]",
        "registration_failed",
        {},
    ),
]
