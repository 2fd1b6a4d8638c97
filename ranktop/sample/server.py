"""What an SGLang server says of itself over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Struct

from ranktop.sample.fields import gauge, label


class SeriesKey(Struct, frozen=True, array_like=True, gc=False):
    """Identity of one Prometheus sample. `name` is spelt with SGLang's colon, whatever the page used."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()

    def label(self, name: str) -> str | None:
        """The value of one label, None where the series has no such label."""
        return next((value for key, value in self.labels if key == name), None)


class MetricsPage(Struct, frozen=True, array_like=True, gc=False):
    """One scrape of `/metrics`, only the families ranktop reads. NaN is left out."""

    server: Annotated[str, label("server", 15, "id of the server")]
    at_unix_seconds: Annotated[float, gauge("at", "seconds", 12, "when the answer was complete")]
    took_seconds: Annotated[float, gauge("took", "seconds", 7, "response time: what the scrape cost the server")]
    size_bytes: Annotated[int, gauge("page", "bytes", 8, "size of the page")]
    keys: tuple[SeriesKey, ...] = ()
    """The same object as on the page before when the series are the same."""
    values: tuple[float, ...] = ()
    """One for each of `keys`."""
    other_families: int = 0
    """Families on the page that ranktop does not read."""

    @property
    def points(self) -> tuple[tuple[SeriesKey, float], ...]:
        """Keys with their values."""
        return tuple(zip(self.keys, self.values, strict=True))


class ServerInfo(Struct, frozen=True, array_like=True):
    """`/server_info` once at attach: resolved server arguments and the memory SGLang reports. No secrets."""

    server: str
    version: str | None = None
    args: dict[str, Any] = {}
    """Resolved ServerArgs fields, secrets dropped at the door."""
    max_total_num_tokens: Annotated[int | None, gauge("L1", "tokens", 9, "capacity of the L1 pool")] = None
    weight_gib: Annotated[float | None, gauge("weights", "GiB", 7, "memory_usage.weight of the first rank")] = None
    kv_cache_gib: Annotated[float | None, gauge("kv", "GiB", 7, "memory_usage.kvcache of the first rank")] = None
    graph_gib: Annotated[float | None, gauge("graphs", "GiB", 7, "memory_usage.graph, summed over phases")] = None
    model_path: str | None = None
    served_model_name: str | None = None
    architectures: tuple[str, ...] = ()
    model_type: str | None = None
    is_ready: bool | None = None
    storage_backend: Annotated[
        str | None, label("L3", 10, "GET /hicache/storage-backend, asked only with an admin key; a mirror, no proof")
    ] = None


class LoadSnapshot(Struct, frozen=True, array_like=True):
    """One DP rank of `/v1/loads`: a shared-memory snapshot, works without --enable-metrics."""

    server: str
    dp_rank: int
    at_unix_seconds: float | None = None
    running_requests: Annotated[int | None, gauge("run", "count", 5, "num_running_reqs")] = None
    waiting_requests: Annotated[int | None, gauge("wait", "count", 5, "num_waiting_reqs")] = None
    used_tokens: Annotated[int | None, gauge("used", "tokens", 9, "num_used_tokens")] = None
    capacity_tokens: Annotated[int | None, gauge("cap", "tokens", 9, "max_total_num_tokens")] = None
    token_usage_ratio: Annotated[float | None, gauge("usage", "ratio", 6, "token_usage, 0..1")] = None
    generation_tokens_per_second: Annotated[float | None, gauge("gen", "tokens_per_second", 8, "gen_throughput")] = None
    weight_gib: Annotated[float | None, gauge("weights", "GiB", 7, "memory.weight_gb, which is GiB")] = None
    kv_cache_gib: Annotated[float | None, gauge("kv", "GiB", 7, "memory.kv_cache_gb, which is GiB")] = None
    graph_gib: Annotated[float | None, gauge("graphs", "GiB", 7, "memory.graph_gb, which is GiB")] = None
    accept_length: Annotated[float | None, gauge("accept", "tokens", 7, "speculative.accept_length")] = None
    accept_ratio: Annotated[float | None, gauge("acc", "ratio", 6, "speculative.accept_rate, 0..1")] = None
    mode: Annotated[str | None, label("mode", 8, "disaggregation.mode: prefill, decode, null")] = None
    bootstrap_queue_requests: Annotated[
        int | None, gauge("boot", "count", 5, "disaggregation.prefill_bootstrap_queue_reqs")
    ] = None
    inflight_queue_requests: Annotated[
        int | None, gauge("infl", "count", 5, "disaggregation.prefill_inflight_queue_reqs")
    ] = None
    prealloc_queue_requests: Annotated[
        int | None, gauge("pre", "count", 5, "disaggregation.decode_prealloc_queue_reqs")
    ] = None
    transfer_queue_requests: Annotated[
        int | None, gauge("xfer", "count", 5, "disaggregation.decode_transfer_queue_reqs")
    ] = None
    paused_requests: Annotated[int | None, gauge("paused", "count", 6, "queues.paused")] = None
    retracted_requests: Annotated[int | None, gauge("retr", "count", 5, "queues.retracted")] = None


class BootstrapRank(Struct, frozen=True, array_like=True):
    """One prefill rank as the bootstrap server knows it. `tp` is the rank within its attention group."""

    dp: int
    cp: int
    tp: int
    pp: int
    is_registered: Annotated[bool | None, label("reg", 4, "GET /route of this rank: 200 or 404")] = None
    address: Annotated[str | None, label("address", 22, "rank_ip:rank_port it registered")] = None


class Bootstrap(Struct, frozen=True, array_like=True):
    """A prefill node's bootstrap server (`disaggregation/common/conn.py` of 0.5.18), by its read-only GET /route."""

    server: str
    is_ready: Annotated[bool, label("ready", 5, "as many registrations as the topology expects")]
    registered_ranks: Annotated[
        int | None, gauge("reg", "count", 5, "registrations counted; a re-registered rank counts twice")
    ] = None
    expected_ranks: Annotated[int | None, gauge("of", "count", 5, "dp x cp x attention tp x pp")] = None
    page_size: Annotated[int | None, gauge("page", "tokens", 5, "page size of the prefill side")] = None
    kv_cache_dtype: Annotated[str | None, label("dtype", 14, "KV cache dtype of the prefill side")] = None
    layer_split: Annotated[bool | None, label("split", 5, "enable_dsa_cache_layer_split")] = None
    ranks: tuple[BootstrapRank, ...] = ()


class RequestRecord(Struct, frozen=True, array_like=True):
    """One finished request of `--export-metrics-to-file`. Its parameters and text are never kept."""

    population: Annotated[
        str, label("population", 10, "cold, l1, l2, l3, partial: where its prompt's cached part came from")
    ]
    finished_unix_seconds: Annotated[float | None, gauge("at", "seconds", 12, "when it finished")] = None
    prompt_tokens: Annotated[int | None, gauge("prompt", "tokens", 8, "prompt tokens")] = None
    cached_tokens: Annotated[int | None, gauge("cached", "tokens", 8, "cached prompt tokens, all tiers")] = None
    device_tokens: Annotated[int | None, gauge("L1", "tokens", 8, "cached in L1")] = None
    host_tokens: Annotated[int | None, gauge("L2", "tokens", 8, "cached in L2")] = None
    storage_tokens: Annotated[int | None, gauge("L3", "tokens", 8, "cached in L3")] = None
    output_tokens: Annotated[int | None, gauge("out", "tokens", 8, "generated tokens")] = None
    ttft_seconds: Annotated[float | None, gauge("ttft", "seconds", 7, "from arrival to the first token")] = None
    e2e_seconds: Annotated[float | None, gauge("e2e", "seconds", 7, "from arrival to the end")] = None
    queue_seconds: Annotated[float | None, gauge("queue", "seconds", 7, "in the waiting queue")] = None
    accept_length: Annotated[float | None, gauge("accept", "tokens", 7, "tokens a verify step")] = None
    verify_steps: Annotated[int | None, gauge("steps", "count", 6, "verify steps")] = None
    dp_rank: Annotated[int | None, label("dp", 3, "DP rank that served it")] = None
    finish: Annotated[str | None, label("finish", 8, "stop, length, abort")] = None


class Connections(Struct, frozen=True, array_like=True):
    """TCP connections in a server's network namespace (`/proc/PID/net/tcp`, proc(5))."""

    server: str
    established_by_port: dict[int, int] = {}
    """Established connections of each listening port: of the HTTP port, clients; of a rank's port, its peers."""
    is_other_network: Annotated[
        bool | None, label("netns", 5, "the server is in another network namespace: its address is not ours")
    ] = None


class ModelConfig(Struct, frozen=True, array_like=True):
    """The `config.json` of a server's model, as the server's own file system has it."""

    server: str
    path: str
    fields: dict[str, Any] = {}
