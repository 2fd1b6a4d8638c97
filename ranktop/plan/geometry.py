"""Bytes of KV rows, pages and pools, as SGLang computes them (`pool_host/`, `memory_pool.py`, 0.5.16 to 0.5.23)."""

from __future__ import annotations

from msgspec import Struct

from ranktop.plan.plan import GB, HostPlan, ModelFacts
from ranktop.plan.profiles import Profile

INDEX_SCALE_BYTES = 4
"""One fp32 scale beside each quantized index key."""
FP8_DTYPES = frozenset({"fp8_e4m3", "fp8_e5m2"})
STAGING_PAGES = 64
BOOKKEEPING_BYTES_PER_TOKEN = 10
"""A pool's own tables, a logical token; outside every check."""


def index_row_bytes(model: ModelFacts) -> int:
    """Bytes of one token's index key in one layer: 132 for a head of 128. 0 without an indexer."""
    return (model.index_head_dim + INDEX_SCALE_BYTES) if model.index_head_dim else 0


def row_bytes(
    profile: Profile, model: ModelFacts, dtype: str, role: str, prefill: str, decode: str, tp: int = 1
) -> int:
    """Bytes of one token in one layer of the primary pool.

    `prefill` and `decode` are the DSA attention backends, `tp` the attention tensor-parallel size (GQA splits its
    heads over it; a latent is whole on every rank). FP8 rows of a DSA model carry scales (656) unless a backend needs
    them raw (576).
    """
    element_bytes = 1 if dtype in FP8_DTYPES else 2
    if model.attention == "gqa":
        heads = max(1, (model.kv_heads or 1) // tp)
        head_dim = model.head_dim or 0
        return heads * (head_dim + (model.v_head_dim or head_dim)) * element_bytes
    latent, rope = model.kv_lora_rank or 0, model.qk_rope_head_dim or 0
    if model.attention == "dsa" and dtype == "fp8_e4m3" and not _raw_rows(profile, role, prefill, decode):
        return latent + latent // 128 * 4 + rope * 2
    return (latent + rope) * element_bytes


def _raw_rows(profile: Profile, role: str, prefill: str, decode: str) -> bool:
    if profile.raw_row_tilelang and prefill == decode == "tilelang":
        return True
    if profile.raw_row_rule == "either backend" or role == "unified":
        return "trtllm" in (prefill, decode)
    return (prefill if role == "prefill" else decode) == "trtllm"


def cell_row_bytes(profile: Profile, model: ModelFacts, dtype: str, row: int) -> int:
    """The row that the L1 sizing charges: the real one but for the defect of 0.5.16."""
    if profile.cell_charges_scaled_row or model.attention != "dsa" or dtype not in FP8_DTYPES:
        return row
    return _latent_elements(model)


def _latent_elements(model: ModelFacts) -> int:
    return (model.kv_lora_rank or 0) + (model.qk_rope_head_dim or 0)


def index_layers_in(model: ModelFacts, start: int, end: int) -> int:
    """How many layers of [start, end) compute their own index."""
    if not model.index_head_dim:
        return 0
    if not model.full_index_layers:
        return end - start
    return sum(start <= layer < end for layer in model.full_index_layers)


class PoolTokens(Struct, frozen=True):
    """Slots of a pool: always whole pages, and at least one token more than asked."""

    tokens: int
    pages: int


def requested_by_size(size_gb: float, bytes_per_token: int) -> int:
    """Tokens that fit a primary pool of `size_gb` decimal GB, before pages."""
    return int(size_gb * GB // bytes_per_token)


def requested_by_ratio(ratio: float, device_tokens: int) -> int:
    """Tokens asked for by a ratio to the device pool, before pages."""
    return int(device_tokens * ratio)


def page_aligned(requested_tokens: int, page_size: int) -> PoolTokens:
    """The page rule `n // page + 1`: an exact multiple still gains a page."""
    pages = requested_tokens // page_size + 1
    return PoolTokens(pages * page_size, pages)


def host_pool(
    row: int, layers: int, index_layers: int, index_row: int, page_size: int, slots: PoolTokens | None, dcp: int = 1
) -> HostPlan:
    """Bytes of one rank's primary and indexer pools. `slots` None when the size is not known.

    `dcp` ranks hold the sequence interleaved, so each slot stands for that many logical tokens.
    """
    per_token, index_per_token = row * layers, index_row * index_layers
    if slots is None:
        unknown = dict.fromkeys(
            ("primary_bytes", "indexer_bytes", "indexer_allocated_bytes", "combined_bytes", "allocated_bytes"), None
        )
        return HostPlan(row, layers, index_layers, per_token, index_per_token, None, None, **unknown)
    primary = slots.tokens * per_token
    page_stride = page_size * index_row
    indexer = slots.pages * index_layers * page_stride
    # torch allocates (tokens + page + 1) // page index pages: page 0 is padding.
    indexer_allocated = (slots.pages + 1) * index_layers * page_stride
    pools = 2 if index_layers else 1
    return HostPlan(
        row,
        layers,
        index_layers,
        per_token,
        index_per_token,
        slots.tokens,
        slots.pages,
        primary_bytes=primary,
        indexer_bytes=indexer,
        indexer_allocated_bytes=indexer_allocated,
        combined_bytes=primary + indexer,
        allocated_bytes=primary + indexer_allocated,
        bookkeeping_bytes=pools * BOOKKEEPING_BYTES_PER_TOKEN * slots.tokens * dcp,
        logical_tokens=slots.tokens * dcp,
    )


def sidecar_pool(
    profile: Profile, model: ModelFacts, dtype: str, row: int, draft_layers: int, target: PoolTokens
) -> HostPlan:
    """A draft model's own host pool: as many tokens as the target's, in most versions one page more."""
    page_size = target.tokens // target.pages
    pages = target.pages + profile.sidecar_extra_pages
    if not profile.sidecar_row_scaled and model.attention == "dsa" and dtype in FP8_DTYPES:
        row = _latent_elements(model)
    index_layers = draft_layers if profile.sidecar_has_indexer and model.index_head_dim else 0
    slots = PoolTokens(pages * page_size, pages)
    return host_pool(row, draft_layers, index_layers, index_row_bytes(model), page_size, slots)


def staging_bytes(model: ModelFacts, layout: str, page_size: int, host: HostPlan) -> int:
    """Device memory that `page_first` copies of MLA pools go through: at most 64 pages of each pool.

    It is taken outside the static budget. The primary's staged kernel needs rows of a multiple of 16 bytes.
    """
    if layout != "page_first" or model.attention == "gqa":
        return 0
    tokens = page_size * (STAGING_PAGES if host.pages is None else min(host.pages, STAGING_PAGES))
    primary = host.bytes_per_token if host.row_bytes % 16 == 0 else 0
    return tokens * (primary + host.index_bytes_per_token)
