"""SGLang's metric families, with their names, types, labels and buckets: 0.5.18's, and what differs in 0.5.23.

Import it only when `PROMETHEUS_MULTIPROC_DIR` is in the environment: prometheus_client decides at import whether
values go to files that several processes share.
"""

from __future__ import annotations

import contextlib
import struct
import time
from typing import Literal, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from ranktop.demo.launch import MODEL_NAME, VERSION

_TRIES = 20
_BETWEEN_TRIES_SECONDS = 0.01

Kind = Literal["counter", "gauge", "histogram"]
Operation = tuple[str, tuple[str, ...], float]
"""Family without `sglang:`, the values of its extra labels, and what to add, set or observe."""

_SCHEDULER = ("model_name", "engine_type", "tp_rank", "pp_rank", "moe_ep_rank")
_RADIX = ("cache_type",)
_RADIX_OF_RANK = (*_RADIX, "dp_rank", "pp_rank", "tp_rank")
"""From 0.5.21 on."""
_TOKENIZER = ("model_name", "engine_type")


def rank_labels(tp: int, engine: str) -> dict[str, str]:
    """Common labels of one rank's series."""
    return {
        "model_name": MODEL_NAME,
        "engine_type": engine,
        "tp_rank": str(tp),
        "pp_rank": "0",
        "dp_rank": "0",
        "moe_ep_rank": "0",
        "cache_type": "UnifiedRadixCache",
    }


class Family(NamedTuple):
    """One family: common labels, then the extra ones, and what kind it is."""

    kind: Kind
    common: tuple[str, ...]
    extra: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    per_pid: bool = False
    """SGLang gives these no multiprocess mode, so that they carry a `pid` label."""


def _gauge(*extra: str) -> Family:
    return Family("gauge", _SCHEDULER, extra)


def _counter(*extra: str) -> Family:
    return Family("counter", _SCHEDULER, extra)


_QUEUE = (
    *(0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 10, 15),
    *range(20, 100, 10),
    *range(100, 1000, 100),
    *range(1000, 2000, 200),
    *(2000, 2500, 3000),
)
_BACKUP = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
_LOAD_BACK = (*(n / 1000 for n in range(1, 11)), 0.02, 0.03, 0.04, 0.05, 0.1, 0.2, 0.5, 1)
_EVICTION = (*_LOAD_BACK, 2, 5, 10, 30, 60)
_FIRST_TOKEN = (0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400)
_BETWEEN_TOKENS = (
    *(0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04),
    *(0.06, 0.08, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8),
)
_END_TO_END = (*_FIRST_TOKEN, 600, 1200, 1800, 2400)

SCHEDULER_FAMILIES: dict[str, Family] = {
    "max_total_num_tokens": _gauge(),
    "weight_memory_usage_gb": _gauge(),
    "kv_cache_memory_usage_gb": _gauge(),
    "graph_memory_usage_gb": _gauge("phase"),
    "page_size": _gauge(),
    "num_pages": _gauge(),
    "context_len": _gauge(),
    "startup_available_gpu_memory_gb": _gauge(),
    "num_running_reqs": _gauge(),
    "num_queue_reqs": _gauge(),
    "num_grammar_queue_reqs": _gauge(),
    "gen_throughput": _gauge(),
    "cache_hit_rate": _gauge(),
    "token_usage": _gauge(),
    "full_token_usage": _gauge(),
    "num_used_tokens": _gauge(),
    "kv_used_tokens": _gauge(),
    "kv_evictable_tokens": _gauge(),
    "kv_available_tokens": _gauge(),
    "hicache_host_used_tokens": _gauge(),
    "hicache_host_total_tokens": _gauge(),
    "spec_accept_length": _gauge(),
    "spec_accept_rate": _gauge(),
    "utilization": _gauge(),
    "fwd_occupancy": _gauge(),
    "is_cuda_graph": _gauge(),
    "num_prefill_bootstrap_queue_reqs": _gauge(),
    "num_prefill_inflight_queue_reqs": _gauge(),
    "num_decode_prealloc_queue_reqs": _gauge(),
    "num_decode_transfer_queue_reqs": _gauge(),
    "num_retracted_reqs": Family("gauge", _SCHEDULER, per_pid=True),
    "num_paused_reqs": Family("gauge", _SCHEDULER, per_pid=True),
    "prefill_effective_tokens_total": _counter("mode"),
    "realtime_tokens_total": _counter("mode"),
    "cuda_graph_passes_total": _counter("mode"),
    "queue_time_seconds": Family("histogram", _SCHEDULER, (), _QUEUE),
    "evicted_tokens_total": Family("counter", _RADIX),
    "eviction_duration_seconds": Family("histogram", _RADIX, (), _EVICTION),
    "load_back_tokens_total": Family("counter", _RADIX, ("pool",)),
    "load_back_bytes_total": Family("counter", _RADIX),
    "load_back_duration_seconds": Family("histogram", _RADIX, (), _LOAD_BACK),
    "hicache_backup_tokens_total": Family("counter", _RADIX, ("pool",)),
    "hicache_backup_bytes_total": Family("counter", _RADIX),
    "hicache_backup_duration_seconds": Family("histogram", _RADIX, (), _BACKUP),
    "hicache_dropped_tokens_total": Family("counter", _RADIX, ("reason", "pool")),
}

TOKENIZER_FAMILIES: dict[str, Family] = {
    "prompt_tokens_total": Family("counter", _TOKENIZER, ("is_streaming",)),
    "generation_tokens_total": Family("counter", _TOKENIZER, ("is_streaming",)),
    "num_requests_total": Family("counter", _TOKENIZER, ("is_streaming",)),
    "spec_verify_calls_total": Family("counter", _TOKENIZER),
    "cached_tokens_total": Family("counter", _TOKENIZER, ("cache_source",)),
    "time_to_first_token_seconds": Family("histogram", _TOKENIZER, ("is_streaming",), _FIRST_TOKEN),
    "inter_token_latency_seconds": Family("histogram", _TOKENIZER, (), _BETWEEN_TOKENS),
    "e2e_request_latency_seconds": Family("histogram", _TOKENIZER, ("is_streaming",), _END_TO_END),
    "startup_time_seconds": Family("gauge", _TOKENIZER, ("phase",)),
    "startup_cuda_graph_time_seconds": Family("gauge", _TOKENIZER, ("phase",)),
    "http_requests_active": Family("gauge", (), ("endpoint", "method")),
}


_OF_0_5_23 = {
    "eviction_duration_seconds": _LOAD_BACK,
    "hicache_backup_duration_seconds": tuple(bound for bound in _BACKUP if bound not in (0.002, 0.02)),
}
"""Buckets."""


def scheduler_families(version: str) -> dict[str, Family]:
    """What a rank of that version writes: in 0.5.23 radix series carry their rank."""
    if version == VERSION:
        return SCHEDULER_FAMILIES
    return {
        name: family._replace(
            common=_RADIX_OF_RANK if family.common == _RADIX else family.common,
            buckets=_OF_0_5_23.get(name, family.buckets),
        )
        for name, family in SCHEDULER_FAMILIES.items()
    }


class Writer:
    """The series of one process. A family is made at its first operation: a counter without an event is absent."""

    def __init__(self, families: dict[str, Family], common: dict[str, str]) -> None:
        self._families = families
        self._common = common
        self._registry = CollectorRegistry()
        self._metrics: dict[str, Counter | Gauge | Histogram] = {}

    def apply(self, operations: list[Operation]) -> None:
        """Add to counters, set gauges, observe in histograms."""
        for name, extra, value in operations:
            metric = self._metrics.get(name) or self._make(name)
            family = self._families[name]
            labels = dict(zip(family.extra, extra, strict=True))
            labels |= {key: self._common[key] for key in family.common}
            child = metric.labels(**labels)
            if isinstance(child, Counter):
                child.inc(value)
            elif isinstance(child, Gauge):
                child.set(value)
            else:
                child.observe(value)

    def _make(self, name: str) -> Counter | Gauge | Histogram:
        family = self._families[name]
        labels = (*family.common, *family.extra)
        full_name = f"sglang:{name}"
        text = f"{name} of the stand-in node"
        metric: Counter | Gauge | Histogram
        if family.kind == "counter":
            metric = Counter(full_name, text, labels, registry=self._registry)
        elif family.kind == "histogram":
            metric = Histogram(full_name, text, labels, registry=self._registry, buckets=family.buckets)
        else:
            mode = "all" if family.per_pid else "mostrecent"
            metric = Gauge(full_name, text, labels, registry=self._registry, multiprocess_mode=mode)
        self._metrics[name] = metric
        return metric


def render(directory: str) -> bytes:
    """The merged page of all processes that write to `directory`, as text/plain version 0.0.4."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=directory)  # pyright: ignore[reportArgumentType]
    for _ in range(_TRIES):
        with contextlib.suppress(struct.error):
            return generate_latest(registry)
        # A process has just created a file and not yet written its header.
        time.sleep(_BETWEEN_TRIES_SECONDS)
    return generate_latest(registry)
