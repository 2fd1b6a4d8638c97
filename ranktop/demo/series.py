"""What a step of traffic does to SGLang's series: which rank adds what, in SGLang's way of counting.

Radix series carry no rank label before 0.5.21: every rank adds the same tokens and the page shows the sum over ranks.
Bytes are tokens times the rank's host bytes a token, all pools.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ranktop.demo.gpus import GRAPH_GIB, kv_gib, startup_available_gib, weight_gib
from ranktop.demo.launch import CONTEXT_TOKENS, DEVICE_TOKENS, PAGE_TOKENS
from ranktop.demo.sizes import PoolSizes
from ranktop.demo.traffic import Finished, Step

if TYPE_CHECKING:
    from ranktop.demo.exposition import Operation

COPY_BYTES_PER_SECOND = 20e9
_GRAPH_PHASES = ("prefill", "decode", "target_verify", "draft_prefill", "draft_decode", "draft_extend")
_MODES = ("input", "device_hit", "host_hit", "storage_hit")


def constants(tp: int, sizes: PoolSizes) -> list[Operation]:
    """Set once after start, by every rank, whatever the flags say."""
    operations: list[Operation] = [
        ("max_total_num_tokens", (), DEVICE_TOKENS),
        ("weight_memory_usage_gb", (), weight_gib(tp)),
        ("kv_cache_memory_usage_gb", (), kv_gib(sizes)),
        ("page_size", (), PAGE_TOKENS),
        ("num_pages", (), DEVICE_TOKENS // PAGE_TOKENS),
        ("context_len", (), CONTEXT_TOKENS),
        ("startup_available_gpu_memory_gb", (), startup_available_gib(tp, sizes)),
    ]
    operations += [
        ("graph_memory_usage_gb", (phase,), GRAPH_GIB if phase == "decode" else 0.0) for phase in _GRAPH_PHASES
    ]
    operations += [("prefill_effective_tokens_total", (mode,), 0) for mode in _MODES]
    return operations


def every_rank(step: Step, sizes: PoolSizes) -> list[Operation]:
    """What each rank adds, stats rank or not."""
    operations: list[Operation] = [("queue_time_seconds", (), one.queue_seconds) for one in step.prefills]
    if step.evicted_tokens:
        operations.append(("evicted_tokens_total", (), step.evicted_tokens))
        operations += [("eviction_duration_seconds", (), 0.0004)] * step.eviction_operations
    if step.dropped_tokens and sizes.tokens:
        operations.append(("hicache_dropped_tokens_total", ("host_pressure", "kv"), step.dropped_tokens))
    for tokens, count, moved, seconds in (
        (step.load_back_tokens, step.load_back_operations, "load_back", "load_back_duration_seconds"),
        (step.backup_tokens, step.backup_operations, "hicache_backup", "hicache_backup_duration_seconds"),
    ):
        if not tokens:
            continue
        moved_bytes = tokens * sizes.bytes_per_token
        operations.append((f"{moved}_tokens_total", ("kv",), tokens))
        operations.append((f"{moved}_bytes_total", (), moved_bytes))
        operations += [(seconds, (), moved_bytes / COPY_BYTES_PER_SECOND / count)] * count
    return operations


def stats_rank(step: Step, sizes: PoolSizes, overrides: dict[str, float] | None = None) -> list[Operation]:
    """Gauges and batch counters, only from ranks that report. `overrides` are gauges that say something else."""
    held = step.used_tokens
    usage = held / DEVICE_TOKENS
    cached = step.device_hit_tokens + step.host_hit_tokens
    operations: list[Operation] = [
        ("num_running_reqs", (), step.running),
        ("num_queue_reqs", (), step.queued),
        ("num_grammar_queue_reqs", (), 0),
        ("gen_throughput", (), step.decode_tokens / step.seconds),
        ("cache_hit_rate", (), step.hit_rate),
        ("token_usage", (), round(usage, 2)),
        ("full_token_usage", (), usage),
        ("num_used_tokens", (), held),
        ("kv_used_tokens", (), held),
        ("kv_evictable_tokens", (), step.evictable_tokens),
        ("kv_available_tokens", (), step.available_tokens),
        ("spec_accept_length", (), 0),
        ("spec_accept_rate", (), 0),
        ("utilization", (), 0),
        ("fwd_occupancy", (), math.nan),
        ("is_cuda_graph", (), 1 if step.running else 0),
        ("num_prefill_bootstrap_queue_reqs", (), 0),
        ("num_prefill_inflight_queue_reqs", (), 0),
        ("num_decode_prealloc_queue_reqs", (), 0),
        ("num_decode_transfer_queue_reqs", (), 0),
        ("num_retracted_reqs", (), 0),
        ("num_paused_reqs", (), 0),
    ]
    if sizes.tokens:
        operations.append(("hicache_host_used_tokens", (), step.host_used_tokens))
        operations.append(("hicache_host_total_tokens", (), sizes.tokens))
    operations += [(name, (), value) for name, value in (overrides or {}).items()]
    counted: list[Operation] = [
        ("prefill_effective_tokens_total", ("input",), step.input_tokens),
        ("prefill_effective_tokens_total", ("device_hit",), step.device_hit_tokens),
        ("prefill_effective_tokens_total", ("host_hit",), step.host_hit_tokens),
        ("realtime_tokens_total", ("prefill_compute",), step.input_tokens),
        ("realtime_tokens_total", ("prefill_cache",), cached),
        ("realtime_tokens_total", ("decode",), step.decode_tokens),
        ("cuda_graph_passes_total", ("prefill_none",), len(step.prefills)),
        ("cuda_graph_passes_total", ("decode_cuda_graph",), math.ceil(step.decode_tokens / max(1, step.running))),
    ]
    return operations + [operation for operation in counted if operation[2]]


def tokenizer_start() -> list[Operation]:
    """Start-up gauges of the HTTP process."""
    phases = {"load_weight": 84.2, "kv_cache_allocation": 2.1, "scheduler_e2e": 171.9, "tokenizer_e2e": 176.4}
    operations: list[Operation] = [("startup_time_seconds", (phase,), took) for phase, took in phases.items()]
    return [*operations, ("startup_cuda_graph_time_seconds", ("decode",), 21.7)]


def tokenizer(step: Step, accept_length: float | None = None) -> list[Operation]:
    """Request-level series, counted when a request ends. `accept_length`: tokens a verify step, if it speculates."""
    operations = at_the_door(step.running + step.queued)
    for one in step.finished:
        operations += _finished(one)
        if accept_length:
            operations.append(("spec_verify_calls_total", (), math.ceil(one.output_tokens / accept_length)))
    return operations


def at_the_door(requests: int) -> list[Operation]:
    """Requests that the HTTP process holds open."""
    return [("http_requests_active", ("/generate", "POST"), requests)]


def _finished(one: Finished) -> list[Operation]:
    streaming = "true" if one.streaming else "false"
    operations: list[Operation] = [
        ("prompt_tokens_total", (streaming,), one.prompt_tokens),
        ("generation_tokens_total", (streaming,), one.output_tokens),
        ("num_requests_total", (streaming,), 1),
        ("time_to_first_token_seconds", (streaming,), one.ttft_seconds),
        ("e2e_request_latency_seconds", (streaming,), one.e2e_seconds),
    ]
    operations += [("inter_token_latency_seconds", (), one.inter_token_seconds)] * (one.output_tokens - 1)
    if one.device_tokens:
        operations.append(("cached_tokens_total", ("device",), one.device_tokens))
    if one.host_tokens:
        operations.append(("cached_tokens_total", ("host",), one.host_tokens))
    return operations
