"""Cases of the case log on the tiers of HiCache (kind 2), with inputs of the project's own."""

from __future__ import annotations

import json

from support.cases_memory import GLM, HICACHE
from support.inspect_case import Case, Code, Seen
from support.node_text import allocating, log, page

REJECTED = 'sglang:hicache_write_rejected_tokens_total{{reason="host_alloc_failed",stage="{}"}}'
R0 = '{engine_type="unified",tp_rank="0"}'


def records() -> str:
    """Requests with a restored prefix decode with 2.87 accepted tokens a step, those without with 5.94."""
    return "".join(
        record(host, length, number) + "\n" for host, length in ((0, 5.94), (120_000, 2.87)) for number in range(4)
    )


def record(host_tokens: int, accept_length: float, number: int) -> str:
    """One line of --export-metrics-to-file."""
    return json.dumps(
        {
            "rid": f"r{host_tokens}-{number}",
            "request_finished_ts": 1_790_000_000.0 + number,
            "prompt_tokens": 130_000,
            "cached_tokens": host_tokens,
            "cached_tokens_details": {"device": 0, "host": host_tokens, "storage": 0},
            "completion_tokens": 2000,
            "spec_accept_length": accept_length,
            "spec_verify_ct": 300,
        }
    )


def decode(tokens: int, length: float, rate: float, transfers: int, second: int) -> str:
    return log(
        f"Decode batch, #running-req: 3, #token: {tokens}, token usage: 0.43, accept len: {length}, "
        f"accept rate: {rate}, pre-allocated usage: 0.22, #prealloc-req: 0, #transfer-req: {transfers}, "
        "#retracted-req: 0, cuda graph: True, gen throughput (token/s): 183.10, #queue-req: 0",
        stamp=f"2026-11-29 09:02:{second:02d}",
    )


def _last_decode(found: object) -> dict[str, object]:
    events = found.verdict.sample.events  # type: ignore[attr-defined]
    return next(event.fields for event in reversed(events) if event.kind == "decode_batch")


CASES = (
    Case(
        26,
        "acceptance fell after what was loaded back",
        {"requests.jsonl": records()},
        codes=(
            Code("SPEC-COLLAPSE", "breach", evidence={"restored_accept_length": 2.87, "fresh_accept_length": 5.94}),
        ),
    ),
    Case(
        28,
        "every field of a decode line under PD",
        {"server.log": decode(266_624, 1.67, 0.13, 1, 47) + decode(331_904, 1.72, 0.14, 3, 50)},
        holds=lambda found: (
            {
                name: _last_decode(found)[name]
                for name in ("tokens", "accept_length", "transfer_requests", "retracted_requests", "preallocated_ratio")
            }
            == {
                "tokens": 331_904,
                "accept_length": 1.72,
                "transfer_requests": 3,
                "retracted_requests": 0,
                "preallocated_ratio": 0.22,
            }
        ),
    ),
    Case(
        29,
        "written, evicted, never read; the counter of host hits does not exist",
        {
            "metrics.prom": page(
                {
                    'sglang:hicache_backup_tokens_total{pool="kv"}': 32_700,
                    'sglang:hicache_backup_tokens_total{pool="mamba"}': 16,
                    "sglang:evicted_tokens_total": 644_810,
                    'sglang:hicache_dropped_tokens_total{pool="kv"}': 0,
                    'sglang:load_back_tokens_total{pool="kv"}': 0,
                    'sglang:load_back_tokens_total{pool="mamba"}': 0,
                    "sglang:hicache_host_total_tokens": 1_136_724,
                }
            )
        },
        codes=(Code("L2-NEVER-READ", "warn", evidence={"since_start": True, "evicted_tokens": 644_810.0}),),
    ),
    Case(
        31,
        "occupancy of each pool",
        not_shown="no release reports the occupancy of the Mamba host pool; only its size is logged (host.other)",
    ),
    Case(
        32,
        "host tokens below device tokens, said before the start",
        {
            "run.sh": f"{GLM} {HICACHE} --hicache-size 20 --hicache-storage-backend mooncake\n",
            "server.log": log("max_total_num_tokens=540928"),
        },
        codes=(Code("PLAN-L2-SMALLER-THAN-L1", "warn"),),
    ),
    Case(
        32,
        "rejected writes by reason",
        {
            "metrics.prom": page(
                {
                    REJECTED.format("write_backup"): 120_000,
                    REJECTED.format("storage_prefetch"): 64_000,
                }
            )
        },
        codes=(Code("L2-DROPPED", "warn", evidence={"rejected_tokens": 184_000.0}),),
    ),
    Case(
        34,
        "pages asked for, no token loaded",
        {
            "server.log": log("Prefetching 157 pages for request 96fb5efb")
            + log("Prefetch 96fb5efb completed with 0 tokens", stamp="2026-11-29 09:00:04")
        },
        codes=(Code("L3-PREFETCH-EMPTY", "warn", evidence={"loaded_tokens": 0}),),
    ),
    Case(
        36,
        "hit shares of a benchmark's rounds",
        not_shown="a benchmark's own printout; L2 below the working set, which is behind it, is cases 32 and 45",
    ),
    Case(
        38,
        "known defects of a version",
        not_shown="no finding is defined for known defects of a version: ranktop measures and keeps no such list",
    ),
    Case(
        39,
        "direct and layer_first resolve to what fails at the first backup",
        {
            "run.sh": f"{GLM} --enable-prefill-cp --disaggregation-mode prefill --cp-strategy interleave "
            f"--enable-dsa-cache-layer-split {HICACHE} --hicache-size 30 --hicache-io-backend direct "
            "--hicache-mem-layout page_first_direct\n"
        },
        codes=(Code("PLAN-FAILS-LATER", "breach"),),
    ),
    Case(
        41,
        "protected tokens: neither used nor available nor evictable",
        {
            "metrics.prom": page(
                {
                    f"sglang:num_running_reqs{R0}": 4,
                    f"sglang:max_total_num_tokens{R0}": 540_928,
                    f"sglang:kv_used_tokens{R0}": 120_000,
                    f"sglang:kv_available_tokens{R0}": 900,
                    f"sglang:kv_evictable_tokens{R0}": 0,
                }
            )
        },
        lines=(
            Seen("TP0", "l1.tokens", 540_928),
            Seen("TP0", "l1.used", 120_000),
            Seen("TP0", "l1.available", 900),
            Seen("TP0", "l1.evictable", 0),
        ),
    ),
    Case(
        42,
        "16 GB, and the ratio is ignored",
        {
            "flags.txt": "--enable-hierarchical-cache --hicache-ratio 2 --hicache-size 16 --hicache-io-backend kernel "
            "--hicache-mem-layout page_first --hicache-write-policy write_through\n"
        },
        codes=(Code("PLAN-SIZE-BEATS-RATIO", "info"),),
        holds=lambda found: round(found.verdict.servers[0].plan.ranks[0].host.primary_bytes / 1e9, 2) == 16.0,
    ),
    Case(
        44,
        "a gauge of 1,054,208 tokens over a pool of 32,960",
        {
            "server.log": log(
                "Allocating kv hierarchical KV host pool: 32960 tokens, 1.69 GB host memory.",
                "Allocating 0.34 GB host memory for DSA indexer (layout=page_first).",
                "Unsupported element_size = 656 for JIT HiCache kernel",
            ),
            "metrics.prom": page(
                {f"sglang:num_running_reqs{R0}": 1, f"sglang:hicache_host_total_tokens{R0}": 1_054_208}
            ),
        },
        codes=(Code("L2-GAUGE-LIES", "breach", ("TP0",), {"gauge_tokens": 1_054_208}),),
    ),
    Case(
        88,
        "two more wordings of pools, summed",
        {
            "server.log": log(
                "Allocating 0.03 GB host memory for V4 state pool 'deepseek_v4_c4_indexer_state' (layers=30, pages=60, "
                "state_page_bytes=16384).",
                "Allocating 0.12 GB host memory for V4 paged pool 'deepseek_v4_c128' (layers=31, pages=614, "
                "item_bytes=1728).",
                tag="TP6",
            )
        },
        lines=(Seen("TP6", "host.other", 150_000_000), Seen("", "host.pools", 150_000_000)),
    ),
    Case(
        89,
        "GiB on the device, GB on the host: the ratio is 1.0",
        {
            "run.sh": "python -m sglang.launch_server --model-path Qwen/Qwen3-32B --page-size 64 "
            f"{HICACHE} --hicache-ratio 1.0\n",
            "server.log": log(
                "KV Cache is allocated. #tokens: 105600, K size: 12.89 GB, V size: 12.89 GB",
                "max_total_num_tokens=105600, chunked_prefill_size=4096",
                allocating(27.70),
                tag="",
            ),
        },
        lines=(Seen("TP0", "host.primary", 27_700_000_000, 105_664 * 262_144),),
    ),
)
