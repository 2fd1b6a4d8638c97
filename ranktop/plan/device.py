"""L1 on the device: the bytes a token is charged, the tokens that a budget admits, and what the pool really takes."""

from __future__ import annotations

from msgspec import Struct

from ranktop.plan.geometry import cell_row_bytes, index_layers_in, index_row_bytes
from ranktop.plan.layersplit import layer_equivalents, ranges
from ranktop.plan.plan import ModelFacts
from ranktop.plan.profiles import Profile


class DeviceShape(Struct, frozen=True):
    """What decides the size of one rank's L1 pool."""

    row: int
    """Bytes of one token in one layer."""
    dtype: str
    start: int
    """The stage's layers are [start, end)."""
    end: int
    split: int = 1
    """Context-parallel ranks that share the layers under LayerSplit; 1 without it."""
    draft_layers: int = 0
    keeps_all_index: bool = False
    """HiSparse, the external linker or a draft worker switch the sharing of index buffers off."""
    hicache_or_pd: bool = False


def index_elided(profile: Profile, shape: DeviceShape) -> bool:
    """Whether L1 has no index buffer for layers that share another's."""
    if profile.device_index_elision == "never" or shape.keeps_all_index:
        return False
    return profile.device_index_elision == "always" or not shape.hicache_or_pd


def cell_bytes(profile: Profile, model: ModelFacts, shape: DeviceShape) -> int:
    """Bytes that the L1 sizing charges a token (`pool_configurator.py`)."""
    layers = shape.end - shape.start
    row = cell_row_bytes(profile, model, shape.dtype, shape.row)
    index_row = index_row_bytes(model)
    kv_layers = layer_equivalents(layers, shape.split)
    cell = row * kv_layers + index_row * _charged_index_layers(profile, model, shape)
    if not shape.draft_layers:
        return cell
    if profile.mtp_packed:
        return cell + (row + index_row) * shape.draft_layers
    return int(cell * (1 + shape.draft_layers / layers))


def _charged_index_layers(profile: Profile, model: ModelFacts, shape: DeviceShape) -> int:
    if not model.index_head_dim:
        return 0
    layers = shape.end - shape.start
    elided = index_elided(profile, shape)
    held = index_layers_in(model, shape.start, shape.end) if elided else layers
    if shape.split <= 1 or not profile.layersplit_cell_divides_index:
        return held
    return max(_owned_index_layers(model, part, elided) for part in ranges(layers, shape.split)) + 1


def _owned_index_layers(model: ModelFacts, part: tuple[int, int], elided: bool) -> int:
    return index_layers_in(model, *part) if elided else part[1] - part[0]


def admitted_tokens(budget_bytes: int, cell: int, page_size: int, max_total_tokens: int | None = None) -> int:
    """Tokens of the L1 pool that an HBM budget admits: whole pages, at most `max_total_tokens`."""
    tokens = budget_bytes // cell
    if max_total_tokens is not None:
        tokens = min(tokens, max_total_tokens)
    return tokens // page_size * page_size


class DevicePool(Struct, frozen=True):
    """Real bytes of one rank's L1 pool, by part."""

    owned_kv_bytes: int
    owned_index_bytes: int
    scratch_kv_bytes: int = 0
    scratch_index_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.reported_bytes + self.scratch_bytes

    @property
    def reported_bytes(self) -> int:
        """What `get_kv_size_bytes` and the start-up log say: never the scratch."""
        return self.owned_kv_bytes + self.owned_index_bytes

    @property
    def scratch_bytes(self) -> int:
        """The layer that owners broadcast into."""
        return self.scratch_kv_bytes + self.scratch_index_bytes


def device_pool(
    profile: Profile, model: ModelFacts, shape: DeviceShape, tokens: int, page_size: int, rank: int = 0
) -> DevicePool:
    """The L1 pool of context-parallel rank `rank` with that many tokens. Draft layers own no share of the split."""
    # Page 0 is padding.
    padded = tokens + page_size
    layers = shape.end - shape.start
    elided = index_elided(profile, shape)
    part = ranges(layers, shape.split)[rank]
    part = (part[0] + shape.start, part[1] + shape.start)
    kv_row = shape.row * padded
    index_row = (padded + 1) // page_size * page_size * index_row_bytes(model)
    index_layers = _owned_index_layers(model, part, elided) if model.index_head_dim else 0
    draft_index = shape.draft_layers if model.index_head_dim else 0
    pool = DevicePool(kv_row * (part[1] - part[0] + shape.draft_layers), index_row * (index_layers + draft_index))
    if shape.split <= 1:
        return pool
    return DevicePool(pool.owned_kv_bytes, pool.owned_index_bytes, kv_row, index_row if model.index_head_dim else 0)
