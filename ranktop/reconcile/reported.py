"""What SGLang says of one rank: its own values where it reports, its group's where it does not."""

from __future__ import annotations

from msgspec import Struct

from ranktop.plan.plan import GIB
from ranktop.reconcile.ranklabels import labels_of
from ranktop.reconcile.series import Series
from ranktop.sample import RankTag, ServerInfo


class Reported(Struct, frozen=True):
    """Gauges of one rank. `*_is_group`: the value is that of the group's stats rank, or a share of a merged sum."""

    weights_bytes: int | None = None
    kv_bytes: int | None = None
    graphs_bytes: int | None = None
    memory_is_group: bool = False
    l1_capacity_tokens: int | None = None
    l1_used_tokens: int | None = None
    l1_evictable_tokens: int | None = None
    l1_available_tokens: int | None = None
    l2_used_tokens: int | None = None
    l2_total_tokens: int | None = None
    accept_length: float | None = None
    accept_rate: float | None = None
    tokens_are_group: bool = False


_OF_ITSELF = (
    "sglang:weight_memory_usage_gb",
    "sglang:kv_cache_memory_usage_gb",
    "sglang:max_total_num_tokens",
)
_OF_ITS_GROUP = (
    "sglang:kv_used_tokens",
    "sglang:kv_evictable_tokens",
    "sglang:kv_available_tokens",
    "sglang:hicache_host_used_tokens",
    "sglang:hicache_host_total_tokens",
    "sglang:spec_accept_length",
    "sglang:spec_accept_rate",
)
_NO_GROUP: list[float | None] = [None] * len(_OF_ITS_GROUP)


def reported(series: Series | None, tag: RankTag, info: ServerInfo | None) -> Reported:
    """From the newest page; memory falls back on `/server_info`, which tells it of the first rank alone."""
    if series is None:
        return _from_info(info)
    labels = labels_of(tag)
    speaker = series.speaker(labels)
    told = series.own_of(_OF_ITS_GROUP, speaker) if speaker is not None else _NO_GROUP
    weights, kv, capacity = series.own_of(_OF_ITSELF, labels)
    graphs = series.all_own("sglang:graph_memory_usage_gb", labels)
    weights_bytes, kv_bytes = _gib(weights), _gib(kv)
    is_told = weights_bytes and kv_bytes and graphs and capacity is not None
    fallback = Reported() if is_told else _from_info(info)
    used, evictable, available, host_used, host_total = [None if tokens is None else int(tokens) for tokens in told[:5]]
    return Reported(
        weights_bytes=weights_bytes or fallback.weights_bytes,
        kv_bytes=kv_bytes or fallback.kv_bytes,
        graphs_bytes=_gib(sum(graphs)) if graphs else fallback.graphs_bytes,
        memory_is_group=weights is None and fallback.memory_is_group,
        l1_capacity_tokens=int(capacity) if capacity is not None else fallback.l1_capacity_tokens,
        l1_used_tokens=used,
        l1_evictable_tokens=evictable,
        l1_available_tokens=available,
        l2_used_tokens=host_used,
        l2_total_tokens=host_total,
        accept_length=told[5],
        accept_rate=told[6],
        tokens_are_group=used is not None and speaker != labels,
    )


def _from_info(info: ServerInfo | None) -> Reported:
    if info is None:
        return Reported()
    return Reported(
        weights_bytes=_gib(info.weight_gib),
        kv_bytes=_gib(info.kv_cache_gib),
        graphs_bytes=_gib(info.graph_gib),
        memory_is_group=True,
        l1_capacity_tokens=info.max_total_num_tokens,
    )


def _gib(value: float | None) -> int | None:
    return round(value * GIB) if value is not None else None
