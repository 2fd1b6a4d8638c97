"""Every wording of SGLang's log lines, old and new, with every framing and rank tag."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.serverlog_args import parse_server_args
from collectors.serverlog_batches import match_batch
from collectors.serverlog_events import LogAssembler
from collectors.serverlog_lines import WORDINGS, match_message
from collectors.serverlog_prefix import rfc3339, split_prefix, unframed
from tests.collectors.soak import TIMES

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
        {"label": "SWA", "dtype": "torch.bfloat16", "tokens": 1024, "size_gib": 1.0},
    ),
    (
        "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 1024, KV size: 1.00 GB, "
        "avail mem=5.00 GB",
        "l1_pool",
        {"dtype": "torch.bfloat16", "tokens": 1024, "size_gib": 1.0, "avail_gib": 5.0},
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


@pytest.mark.parametrize(("message", "kind", "fields"), MESSAGES, ids=[message[:40] for message, _, _ in MESSAGES])
def test_wordings(message: str, kind: str, fields: dict[str, Any]) -> None:
    assert match_message(split_prefix(message).message) == (kind, fields)


def test_every_wording_is_tried() -> None:
    tried = {kind for _, kind, _ in MESSAGES}
    assert {wording.kind for wording in WORDINGS} - tried == {"prefetch_begin"}
    assert match_message("Prefetching 157 pages for request 96fb") == ("prefetch_begin", {"pages": 157, "rid": "96fb"})


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Load weight",
        "Allocating",
        "KV Cache is fine",
        "Prefill of something else",
        'INFO:     127.0.0.1:52024 - "GET /metrics HTTP/1.1" 200 OK',
        "Not enough coffee",
    ],
)
def test_near_misses(message: str) -> None:
    assert match_message(message) is None
    assert match_batch(message) is None


def test_batch_lines() -> None:
    decode = (
        "Decode batch, #running-req: 3, #token: 266624, token usage: 0.43, accept len: 1.67, accept rate: 0.13, "
        "pre-allocated usage: 0.22, #prealloc-req: 0, #transfer-req: 1, #retracted-req: 0, #host-receive-req: 2, "
        "cuda graph: True, gen throughput (token/s): 183.10, #queue-req: 0"
    )
    assert match_batch(decode) == (
        "decode_batch",
        {
            "running_requests": 3,
            "tokens": 266624,
            "token_usage_ratio": 0.43,
            "accept_length": 1.67,
            "accept_ratio": 0.13,
            "preallocated_ratio": 0.22,
            "prealloc_requests": 0,
            "transfer_requests": 1,
            "retracted_requests": 0,
            "host_receive_requests": 2,
            "is_cuda_graph": True,
            "gen_tokens_per_second": 183.1,
            "queued_requests": 0,
        },
    )
    prefill = (
        "Prefill batch [12], #new-seq: 1, #new-token: 8192, #cached-token: 0, full token usage: 0.31, swa token usage: "
        "0.02, #running-req: 0, #queue-req: 2, #pending-token: 12288, #bootstrap-req: 1, #inflight-req: 2, "
        "#optimistic-req: 0, #replay-token: 5, cuda graph: False, input throughput (token/s): 512.44, "
        "fwd occupancy: 97.50%, surprise: 5, #queue-req: broken"
    )
    found = match_batch(prefill)
    assert found is not None
    kind, fields = found
    assert (kind, fields["new_requests"], fields["replay_tokens"]) == ("prefill_batch", 1, 5)
    assert (fields["full_token_usage_ratio"], fields["occupancy_percent"]) == (0.31, 97.5)
    assert (fields["bootstrap_requests"], fields["is_cuda_graph"]) == (1, False)


@pytest.mark.parametrize(
    ("line", "tag", "message"),
    [
        ("[2026-11-29 09:00:00] hello", None, "hello"),
        ("[2026-11-29 09:00:00 TP3] hello", "TP3", "hello"),
        ("[2026-11-29 09:00:00.123 DP1 TP5 EP5] hello", "DP1 TP5 EP5", "hello"),
        ("[2026-11-29 09:00:00 DP0 PP0 ATTN_CP3 MOE_DP1 TP7 EP1] x", "DP0 PP0 ATTN_CP3 MOE_DP1 TP7 EP1", "x"),
        ("[2025-12-02 07:04:51 DisaggregationMode.IGPUDECODE TP1] hello", "TP1", "hello"),
        ("[TP2] hello", "TP2", "hello"),
        ("[03:21:43] hello", None, "hello"),
        ("\x1b[32m[2026-11-29 09:00:00 TP3]\x1b[0m hello", "TP3", "hello"),
        ("[]hello", None, "[]hello"),
        ("[CI GPU Idle] hello", None, "hello"),
        ("[2026-99-29 09:00:00 TP3] hello", "TP3", "hello"),
    ],
)
def test_prefixes(line: str, tag: str | None, message: str) -> None:
    prefix = split_prefix(line)
    assert (prefix.tag, prefix.message) == (tag, message)


@pytest.mark.parametrize(
    ("line", "text", "at", "is_partial"),
    [
        ("2026-11-29T09:00:00.123456789Z stdout F hi", "hi", rfc3339("2026-11-29T09:00:00.123456Z"), False),
        ("2026-11-29T11:00:00.5+02:00 stderr P hi", "hi", rfc3339("2026-11-29T09:00:00.5Z"), True),
        (
            '{"log":"hi\\n","stream":"stdout","time":"2026-11-29T09:00:00Z"}',
            "hi",
            rfc3339("2026-11-29T09:00:00Z"),
            False,
        ),
        (
            '{"log":"hi","stream":"stdout","time":"2026-11-29T09:00:00Z"}',
            "hi",
            rfc3339("2026-11-29T09:00:00Z"),
            True,
        ),
        ('{"log":', '{"log":', None, False),
        (
            "worker-1  | 2026-08-31T18:05:32.831330Z  INFO a.b: hi",
            "INFO a.b: hi",
            rfc3339("2026-08-31T18:05:32.83133Z"),
            False,
        ),
        ("[2026-11-29 09:00:00 TP3] hi", "[2026-11-29 09:00:00 TP3] hi", None, False),
    ],
)
def test_framings(line: str, text: str, at: float | None, is_partial: bool) -> None:
    framed = unframed(line)
    assert (framed.text, framed.at_unix_seconds, framed.is_partial) == (text, at, is_partial)


@pytest.mark.parametrize(
    "text",
    [
        "ServerArgs(model_path='/m (x), y', tp_size=8, api_key='S1', mode=<Mode.A: 'a,b'>, lst=[1, (2, 3)], d=None)",
        "{'model_path': '/m (x), y', 'tp_size': 8, 'api_key': 'S1', 'mode': <Mode.A: 'a,b'>, 'lst': [1, (2, 3)], "
        "'d': None}",
    ],
)
def test_server_args_of_both_forms(text: str) -> None:
    args = parse_server_args(text)
    assert args == {"model_path": "/m (x), y", "tp_size": 8, "mode": "<Mode.A: 'a,b'>", "lst": [1, [2, 3]], "d": None}


@given(st.integers(0, 120))
def test_cut_server_args_give_what_stands_before_the_cut(length: int) -> None:
    text = "ServerArgs(model_path='/m', tp_size=8, hicache_size=120, api_key='S1', hicache_ratio=2.0, page_size=64)"
    args = parse_server_args(text[:length])
    assert "S1" not in str(args)
    assert args.get("tp_size") in (None, 8)
    assert args.get("hicache_size") in (None, 120)


@pytest.mark.shared
def test_genuine_pool_lines(shared: Path) -> None:
    lines = (shared / "samples" / "hostpool_0.5.18_tp8_size120_ok.log").read_text().splitlines()
    assembler = LogAssembler("a:1")
    assembler.feed(lines, 0.0)
    events = assembler.take()
    assert [event.kind for event in events].count("host_pool") == 8
    assert [event.kind for event in events].count("host_indexer") == 8
    assert {event.rank for event in events} == {f"TP{rank}" for rank in range(8)}


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("01-glm52-fp8-8xh200-hicache96-golden.log", {"host_pool", "host_indexer"}),
        ("02-swap-buffcache-tp4-size40.log", {"host_pool"}),
        ("07-reserve-message.log", {"host_pool_failed"}),
        ("14-hostregister-rocm-ceiling.log", {"pin_failed"}),
        ("20-memlock-register.log", {"registration_failed"}),
        ("23-ratio2-small-model.log", {"host_pool", "capacity"}),
        ("26-issue31600-cp8.log", {"host_pool", "jit_fallback"}),
        ("28-decode-lines-acceptlen.log", {"decode_batch"}),
        ("34-prefetch-zero.log", {"prefetch", "prefetch_begin"}),
        ("48-glm52-pd-load-lines.log", {"weights_end"}),
        ("50-kvtransfer-other-rank.log", {"pd_failed"}),
        ("52-bootstrap-timeout.log", {"pd_failed"}),
        ("53-mooncake-tcp.log", {"transport"}),
        ("71-numactl-dies.log", {"numa_failed"}),
        ("88-dsv4-pools.log", {"host_pool_other"}),
        ("89-qwen3-units.log", {"l1_pool", "host_pool", "capacity", "storage"}),
    ],
)
def test_public_cases(shared: Path, name: str, expected: set[str]) -> None:
    assembler = LogAssembler("a:1")
    assembler.feed((shared / "cases" / "inputs" / name).read_text().splitlines(), 0.0)
    assert expected <= {event.kind for event in assembler.take()}


SEEDS = [message for message, _, _ in MESSAGES] + [
    "[2026-11-29 09:00:00.123 DP1 TP5 EP5] Decode batch, #running-req: 3, #token: 2, cuda graph: True",
    "2026-11-29T09:00:00.123456789Z stdout P server_args=ServerArgs(model_path='/m', tp_size=8)",
    '{"log":"Traceback (most recent call last):\\n","stream":"stdout","time":"2026-11-29T09:00:00Z"}',
]


def test_mutated_lines_are_read() -> None:
    chance = random.Random(7)
    assembler = LogAssembler("a:1")
    for _ in range(1500 * TIMES):
        line = list(chance.choice(SEEDS))
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(line))
            line[at] = chance.choice(
                ["", " ", "[", "]", "'", ":", "9" * 30, chr(chance.randrange(0x2FF)), line[at] * 50]
            )
        assembler.feed(["".join(line)], 5.0)
    assert len(assembler.take()) > 10


@settings(max_examples=300 * TIMES, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=8))
def test_any_lines_are_read(lines: list[str]) -> None:
    assembler = LogAssembler("a:1")
    assembler.feed(lines, 5.0)
    assembler.take()
