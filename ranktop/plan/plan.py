"""The plan as data: what every rank of a launch should hold. Computed, never measured.

The fields are the keys of `ranktop plan --json`; units in names, bytes are ints, GB is 1e9 and GiB is 2^30.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from ranktop.finding import Finding

Role = Literal["unified", "prefill", "decode"]
EligibilityVerdict = Literal["accepted", "rejected", "rewritten", "ignored", "untested"]

GIB = 1 << 30
GB = 10**9


class PlanError(ValueError):
    """A launch or a model that no plan can be computed for: one line that names flag, value and what is accepted."""


class SglangVersion(Struct, frozen=True):
    """The version asked for, the profile that computes it, and whether that profile is exact."""

    version: str
    profile: str
    exact: bool


class ModelFacts(Struct, frozen=True):
    """What the plan needs of a model. None where the model has no such thing (no indexer, no latent)."""

    name: str
    layers: int
    mtp_layers: int = 0
    kv_lora_rank: int | None = None
    qk_rope_head_dim: int | None = None
    index_head_dim: int | None = None
    index_layers: int | None = None
    """Layers that compute their own index; the others share one."""
    attention: Literal["dsa", "mla", "gqa"] = "dsa"
    kv_heads: int | None = None
    head_dim: int | None = None
    v_head_dim: int | None = None
    full_index_layers: tuple[int, ...] = ()
    """Which layers those are by pattern, or frequency and offset; empty for all."""
    listed_index_layers: tuple[int, ...] = ()
    """Which layers those are by the config's explicit list, which SGLang reads from 0.5.20 on."""
    architecture: str | None = None
    max_position: int | None = None
    notes: tuple[str, ...] = ()
    """What of this model the plan does not cover."""


class Rewrite(Struct, frozen=True):
    """A flag that resolves to something else than asked."""

    flag: str
    requested: Any
    resolved: Any
    why: str


class ResolvedLaunch(Struct, frozen=True):
    """Server arguments after SGLang's own resolution."""

    role: Role
    tp_size: int
    pp_size: int
    dp_size: int
    attn_cp_size: int
    dcp_size: int
    page_size: int
    kv_cache_dtype: str
    hicache: bool
    hicache_size_gb: float | None = None
    hicache_ratio: float | None = None
    write_policy: str = "write_through"
    io_backend: str = "kernel"
    mem_layout: str = "page_first"
    storage_backend: str | None = None
    layer_split: bool = False
    speculative: str | None = None
    numa_node: tuple[str, ...] = ()
    """`--numa-node`, by GPU index."""
    rewritten: tuple[Rewrite, ...] = ()
    assumed: tuple[str, ...] = ()
    unknown_flags: tuple[str, ...] = ()


class LayerRange(Struct, frozen=True):
    """Half-open range of target layers that a rank owns."""

    start: int
    end: int
    owned: int


class HostPlan(Struct, frozen=True):
    """One rank's host pools (L2). None where the size is not known (a ratio without device tokens)."""

    row_bytes: int
    layers: int
    index_layers: int
    bytes_per_token: int
    index_bytes_per_token: int
    tokens: int | None
    pages: int | None
    primary_bytes: int | None
    indexer_bytes: int | None
    """What SGLang checks and logs."""
    indexer_allocated_bytes: int | None
    """What it maps: one page a layer more."""
    combined_bytes: int | None
    allocated_bytes: int | None
    draft_bytes: int = 0
    draft_indexer_bytes: int = 0
    bookkeeping_bytes: int | None = None
    logical_tokens: int | None = None
    """Tokens of the sequence that the slots stand for: more than `tokens` under DCP."""


class DevicePlan(Struct, frozen=True):
    """One rank's share of HBM that the plan can compute."""

    bytes_per_token: int
    """What the L1 sizing charges a token (the cell)."""
    layer_equivalents: int
    scratch_layers: int
    staging_bytes: int
    pool_tokens: int | None = None
    pool_bytes: int | None = None
    """Real bytes of the L1 pool, scratch included, when its tokens are known."""
    scratch_bytes: int | None = None


class RankIdentity(Struct, frozen=True):
    """One scheduler process."""

    rank: str
    tp: int
    pp: int
    dp: int
    cp: int
    cuda_index: int


class RankPlan(RankIdentity, frozen=True):
    """What one rank should hold."""

    layers: LayerRange
    host: HostPlan | None
    """None without HiCache."""
    device: DevicePlan


class NodePlan(Struct, frozen=True):
    """Sums over this node's ranks, and the host gate (contracts.md: the gate)."""

    ranks: int
    combined_bytes: int | None
    allocated_bytes: int | None
    reserve_bytes: int
    per_rank_gate_bytes: int | None
    surely_fits_bytes: int | None
    surely_fails_below_bytes: int | None


class LayerSplitPlan(Struct, frozen=True):
    """LayerSplit: which layers each context-parallel rank owns."""

    active: bool
    ranges: tuple[tuple[int, int], ...]
    max_owned: int
    layer_equivalents: int
    reduction_percent: float
    reasons: tuple[str, ...] = ()


class L3Plan(Struct, frozen=True):
    """Prefetch from storage: deadlines by prefix length in tokens."""

    threshold_tokens: int
    deadline_seconds: dict[str, float]
    policy: str
    cache: str


class Eligibility(Struct, frozen=True):
    """One conjunction of flags and what this version does with it."""

    rule: str
    verdict: EligibilityVerdict
    message: str
    finding: str | None = None
    """The PLAN code that this raises, None where it is only worth listing."""


class Plan(Struct, frozen=True):
    """The whole plan for this node's ranks of one launch."""

    sglang: SglangVersion
    model: ModelFacts
    launch: ResolvedLaunch
    ranks: tuple[RankPlan, ...]
    node: NodePlan
    layer_split: LayerSplitPlan
    l3: L3Plan
    eligibility: tuple[Eligibility, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    is_model_assumed: bool = False
    """Nobody named the model, or its path is none that is built in: sizes may be another model's."""
    schema: int = 1
