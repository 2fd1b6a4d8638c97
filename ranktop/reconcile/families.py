"""The metric families that ranktop reads: what each is, who writes it, and so how its samples may be joined.

Source: `observability/metrics_collector.py` of SGLang 0.5.14 to 0.5.23 (which version has which:
`series_by_version.json`). `hicache_write_rejected_tokens_total` is of a public report: no release to 0.5.23 has it.

Writers:
* `stats`: ranks with attn_tp_rank 0 (from 0.5.23 also attn_cp_rank 0), or every rank with
  --enable-metrics-for-all-schedulers. A value is the rank's group's: never summed over tp_rank.
* `ranks`: every rank, each its own value.
* `radix`: every rank, without rank labels until 0.5.20 (one merged series: tokens read ranks x logical), with
  tp_rank, pp_rank, dp_rank from 0.5.21.
* `storage`: every rank, labelled per rank in every version.
* `http`: the tokenizer and HTTP process, no rank labels.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Kind = Literal["gauge", "counter", "histogram", "summary"]
Writer = Literal["stats", "ranks", "radix", "storage", "http"]


class Family(Struct, frozen=True):
    """One family. `name` is the exported one with SGLang's colon; `summary` is a histogram read without buckets."""

    name: str
    kind: Kind
    writer: Writer

    @property
    def series_names(self) -> tuple[str, ...]:
        """Names of the sample lines that are read."""
        if self.kind == "histogram":
            return (f"{self.name}_bucket", f"{self.name}_sum", f"{self.name}_count")
        if self.kind == "summary":
            return (f"{self.name}_sum", f"{self.name}_count")
        return (self.name,)


_NAMES: dict[tuple[Kind, Writer], str] = {
    ("gauge", "stats"): """
        num_running_reqs num_queue_reqs num_grammar_queue_reqs num_used_tokens token_usage full_token_usage
        kv_used_tokens kv_evictable_tokens kv_available_tokens mamba_usage swa_token_usage
        hicache_host_used_tokens hicache_host_total_tokens hicache_host_mamba_used_states
        hicache_host_mamba_total_states gen_throughput cache_hit_rate decode_sum_seq_lens
        spec_accept_length spec_accept_rate num_retracted_reqs num_paused_reqs new_token_ratio is_cuda_graph
        utilization fwd_occupancy num_prefill_bootstrap_queue_reqs num_prefill_inflight_queue_reqs
        num_decode_prealloc_queue_reqs num_decode_transfer_queue_reqs pending_prealloc_token_usage
        num_decode_host_receive_queue_reqs num_decode_deferred_kv_release_reqs prealloc_full_token_usage
        """,
    ("counter", "stats"): "prefill_effective_tokens_total realtime_tokens_total cuda_graph_passes_total",
    ("gauge", "ranks"): """
        max_total_num_tokens max_total_num_tokens_swa weight_memory_usage_gb kv_cache_memory_usage_gb
        graph_memory_usage_gb startup_available_gpu_memory_gb page_size num_pages context_len
        """,
    ("counter", "ranks"): """
        num_retracted_requests_total num_retracted_input_tokens_total num_retracted_output_tokens_total
        num_bootstrap_failed_reqs_total num_transfer_failed_reqs_total num_prefill_retries_total
        decode_deferred_kv_release_total num_decode_host_receive_reqs_total
        scheduler_idle_seconds_total scheduler_process_cpu_seconds_total
        """,
    ("summary", "ranks"): "queue_time_seconds per_stage_req_latency_seconds kv_transfer_total_mb",
    ("histogram", "ranks"): """
        kv_transfer_latency_ms kv_transfer_speed_gb_s kv_transfer_bootstrap_ms kv_transfer_alloc_ms
        """,
    ("counter", "radix"): """
        evicted_tokens_total load_back_tokens_total load_back_bytes_total hicache_backup_tokens_total
        hicache_backup_bytes_total hicache_dropped_tokens_total hicache_write_rejected_tokens_total
        """,
    ("summary", "radix"): "eviction_duration_seconds load_back_duration_seconds hicache_backup_duration_seconds",
    ("counter", "storage"): """
        prefetched_tokens_total backuped_tokens_total storage_prefetch_hit_tokens_total
        storage_prefetch_unfulfilled_tokens_total storage_prefetch_deferred_tokens_total
        hicache_backup_dropped_tokens_total hicache_prefetch_aux_alloc_failed_tokens_total
        """,
    ("summary", "storage"): "prefetch_pgs backup_pgs prefetch_bandwidth backup_bandwidth",
    ("counter", "http"): """
        cached_tokens_total prompt_tokens_total generation_tokens_total num_requests_total
        num_aborted_requests_total spec_verify_calls_total http_requests_total http_responses_total
        process_cpu_seconds_total
        """,
    ("gauge", "http"): "http_requests_active startup_time_seconds startup_cuda_graph_time_seconds",
    ("histogram", "http"): """
        time_to_first_token_seconds inter_token_latency_seconds e2e_request_latency_seconds
        request_time_per_output_token_seconds
        """,
    ("summary", "http"): "get_loads_duration_seconds prompt_tokens_histogram generation_tokens_histogram",
}

FAMILIES: dict[str, Family] = {
    f"sglang:{name}": Family(f"sglang:{name}", kind, writer)
    for (kind, writer), names in _NAMES.items()
    for name in names.split()
}

SERIES_NAMES: frozenset[str] = frozenset(name for family in FAMILIES.values() for name in family.series_names)
"""Every sample line name that a page is searched for."""
