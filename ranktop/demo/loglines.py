"""Log lines in SGLang 0.5.18's formats (sglang-telemetry.md, section d): local time, no zone, the rank's tag."""

from __future__ import annotations

import time
from typing import Any

from ranktop.demo.gpus import GRAPH_GIB, kv_gib, startup_available_gib, weight_gib
from ranktop.demo.launch import CONTEXT_TOKENS, DEVICE_TOKENS
from ranktop.demo.memory import POD
from ranktop.demo.sizes import PoolSizes
from ranktop.demo.traffic import PrefillBatch, Step

READY = "The server is fired up and ready to roll!"
SIGTERM = "SIGTERM received. signum=None frame=None. Draining requests and shutting down..."


def line(at_unix_seconds: float, message: str, tag: str = "") -> str:
    """One line with SGLang's prefix."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_unix_seconds))
    return f"[{stamp}{' ' + tag if tag else ''}] {message}\n"


def server_args(args: dict[str, Any]) -> str:
    """The resolved arguments as 0.5.18 prints them, keys and all."""
    return f"server_args=ServerArgs({', '.join(f'{name}={value!r}' for name, value in args.items())})"


def start_up(tp: int, sizes: PoolSizes) -> list[str]:
    """What a rank logs until its host pools are next."""
    before = startup_available_gib(tp, sizes) + GRAPH_GIB + kv_gib(sizes)
    after_pool = before - kv_gib(sizes)
    graph = "target decode CUDA graph"
    lines = [
        "Init torch distributed begin.",
        f"Init torch distributed ends. elapsed={11.2 + 0.05 * tp:.2f} s, mem usage={1.07 + 0.01 * tp:.2f} GB",
        f"Load weight begin. avail mem={before + weight_gib(tp):.2f} GB",
        f"Load weight end. elapsed={84.2 + 0.4 * tp:.2f} s, type=GlmMoeDsaForCausalLM, quant=fp8, fmt=e4m3, "
        f"avail mem={before:.2f} GB, mem usage={weight_gib(tp):.2f} GB.",
        f"KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: {DEVICE_TOKENS}, KV size: {kv_gib(sizes):.2f} GB",
        f"Memory pool end. avail mem={after_pool:.2f} GB",
        f"Capture {graph} begin. backend=full, num_tokens_per_req=1, bs=[1, 2, 4], avail mem={after_pool:.2f} GB",
        f"Capture {graph} end. elapsed={21.7 + 0.1 * tp:.2f} s, mem usage={GRAPH_GIB:.2f} GB, "
        f"avail mem={after_pool - GRAPH_GIB:.2f} GB.",
    ]
    if tp == 0:
        lines.append(
            f"max_total_num_tokens={DEVICE_TOKENS}, chunked_prefill_size=8192, max_prefill_tokens=16384, "
            f"max_running_requests=48, context_len={CONTEXT_TOKENS}, "
            f"available_gpu_mem={startup_available_gib(tp, sizes):.2f} GB"
        )
    return lines


def host_pools(sizes: PoolSizes) -> list[str]:
    """What a rank logs just before it allocates its host pools, nothing without L2. GB is 1e9."""
    if not sizes.tokens:
        return []
    packed = ""
    if sizes.draft_layers:
        total = sizes.target_layers + sizes.draft_layers
        packed = f", packed MTP{{}} layers: target_layers={sizes.target_layers}, "
        packed += f"draft_layers={sizes.draft_layers}, total_layers={total}"
    return [
        f"Allocating kv hierarchical KV host pool: {sizes.tokens} tokens, "
        f"{sizes.primary_bytes / 1e9:.2f} GB host memory{packed.format(' KV')}.",
        f"Allocating {sizes.indexer_bytes / 1e9:.2f} GB host memory for DSA indexer (layout={sizes.layout})"
        f"{packed.format('')}.",
    ]


def shard_plan(rank: int, ranges: tuple[tuple[int, int], ...], early: int = 0) -> list[str]:
    """What a rank logs of LayerSplit. `early` layers too many at the start of its own range."""
    layers, size = ranges[-1][1], len(ranges)
    start, end = ranges[rank]
    own = f"[{start - early},{end})"
    parts = "; ".join(f"r{other}:[{first},{last})" for other, (first, last) in enumerate(ranges))
    return [
        f"Layer shard plan (continuous): layer_num={layers}, shard_size={size}, rank={rank}, local={own}, "
        f"global={own}, partitions={parts}",
        f"Initialized dedicated layer-shard broadcast NCCL communicator: rank={rank}, world_size={size}",
    ]


def exception(text: str) -> str:
    """What a rank logs when it ends; `text` is the last line of the traceback."""
    return f"Scheduler hit an exception: Traceback (most recent call last):\n{text}"


def oom_kill(pid: int, shmem_bytes: int) -> list[str]:
    """What the kernel logs of a kill in a memory cgroup (mm/oom_kill.c of Linux 6)."""
    return [
        f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0-1,"
        f"oom_memcg={POD},task_memcg={POD},task=sglang::schedul,pid={pid},uid=0",
        f"Memory cgroup out of memory: Killed process {pid} (sglang::schedul) total-vm:{shmem_bytes // 1024}kB, "
        f"anon-rss:20480kB, file-rss:12288kB, shmem-rss:{shmem_bytes // 1024}kB, UID:0 pgtables:512kB "
        "oom_score_adj:0",
    ]


def prefill(step: Step, batch: PrefillBatch) -> str:
    """One prefill report."""
    return (
        f"Prefill batch, #new-seq: 1, #new-token: {batch.new_tokens}, #cached-token: {batch.cached_tokens}, "
        f"token usage: {step.used_tokens / DEVICE_TOKENS:.2f}, #running-req: {step.running}, "
        f"#queue-req: {step.queued}, #pending-token: 0, cuda graph: False, "
        f"input throughput (token/s): {step.input_tokens / step.seconds:.2f}"
    )


def decode(step: Step, overrides: dict[str, float]) -> str:
    """One decode report. `overrides` are gauges that say something else than the traffic."""
    accept = ""
    if "spec_accept_length" in overrides:
        accept = (
            f"accept len: {overrides['spec_accept_length']:.2f}, accept rate: {overrides['spec_accept_rate']:.2f}, "
        )
    return (
        f"Decode batch, #running-req: {step.running}, #token: {step.used_tokens}, "
        f"token usage: {step.used_tokens / DEVICE_TOKENS:.2f}, {accept}cuda graph: True, "
        f"gen throughput (token/s): {step.decode_tokens / step.seconds:.2f}, #queue-req: {step.queued}"
    )
