"""The plan of one launch: every rank's pools, this node's sums, the host gate. Pure; nothing is read here."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from ranktop.plan import device as l1
from ranktop.plan import geometry, layersplit
from ranktop.plan.arguments import Arguments, arguments_of
from ranktop.plan.autosize import auto_ratio
from ranktop.plan.eligibility import check_eligibility, layer_split_reasons
from ranktop.plan.gate import node_plan
from ranktop.plan.l3 import l3_plan
from ranktop.plan.launch import LaunchRequest
from ranktop.plan.launchrules import launch_findings
from ranktop.plan.models import DEFAULT_MODEL, guess_model, model_named
from ranktop.plan.notes import plan_notes
from ranktop.plan.plan import (
    DevicePlan,
    HostPlan,
    LayerRange,
    LayerSplitPlan,
    ModelFacts,
    Plan,
    PlanError,
    RankPlan,
    ResolvedLaunch,
)
from ranktop.plan.profiles import Profile, profile_for
from ranktop.plan.ranks import RankIdentity, local_ranks
from ranktop.plan.resolve import Resolved, fill_defaults, resolve


class _Setting(Struct, frozen=True):
    """What every rank of the launch shares."""

    profile: Profile
    model: ModelFacts
    args: Arguments
    row: int
    stages: tuple[tuple[int, int], ...]
    split: int
    """Ranks that share the layers; 1 without LayerSplit."""
    draft_layers: int
    device_tokens: int | None
    hbm_budget_bytes: int | None
    host_available_bytes: int | None
    is_sized_automatically: bool
    """Neither a size nor a ratio was given."""

    @property
    def packed_layers(self) -> int:
        """Draft layers inside the target's host pool."""
        return self.draft_layers if self.profile.mtp_packed and self.has_host_draft else 0

    @property
    def has_host_draft(self) -> bool:
        """HiRadixCache ignores packed draft pools (0.5.18, plain MLA and GQA)."""
        packed_and_ignored = self.profile.mtp_packed and self.profile.plain_tree == "HiRadixCache"
        return bool(self.draft_layers) and not (packed_and_ignored and self.model.attention != "dsa")


def compute_plan(
    request: LaunchRequest,
    *,
    version: str | None = None,
    model: ModelFacts | str | None = None,
    arch: str | None = None,
    device_tokens: int | None = None,
    hbm_budget_bytes: int | None = None,
    host_available_bytes: int | None = None,
) -> Plan:
    """The plan of `request`. Raises PlanError for values that no server can have.

    `version` and `model` fall back on what the request says, then on the defaults. `device_tokens` is the L1 pool's
    size; `hbm_budget_bytes` computes it instead. `host_available_bytes` is only used by 0.5.21's automatic size.
    """
    profile, sglang = profile_for(version or request.sglang_version)
    facts, assumed_model = _model(request, model)
    facts = _as_seen_by(profile, facts)
    asked = arguments_of(request)
    resolved = (fill_defaults if request.resolved else resolve)(asked, profile, facts, arch)
    if assumed_model:
        resolved = replace(resolved, assumed=(*resolved.assumed, assumed_model))
    _check_tokens(device_tokens)
    setting = _setting(
        request, profile, facts, asked, resolved.args, device_tokens, hbm_budget_bytes, host_available_bytes
    )
    ranks = _rank_plans(setting)
    launch_ranks = -(-asked.tp_size * asked.pp_size * (1 if asked.attn_dp_size > 1 else asked.dp_size) // asked.nnodes)
    args = resolved.args
    plan = Plan(
        sglang=sglang,
        model=facts,
        launch=_resolved_launch(request, resolved, setting),
        ranks=ranks,
        node=node_plan(profile, [rank.host for rank in ranks], launch_ranks),
        layer_split=_layer_split(setting, resolved),
        l3=l3_plan(
            profile,
            facts.attention,
            args.page_size or 1,
            args.hicache_storage_prefetch_policy,
            args.hicache_storage_backend_extra_config,
        ),
        eligibility=check_eligibility(asked, resolved, profile, facts, request),
    )
    plan = replace(plan, notes=plan_notes(plan, profile, args))
    return replace(plan, findings=launch_findings(plan, asked, args, request.resolved))


def _model(request: LaunchRequest, model: ModelFacts | str | None) -> tuple[ModelFacts, str | None]:
    if isinstance(model, ModelFacts):
        return model, None
    if model is not None:
        return model_named(model), None
    path = request.flags.get("model_path")
    guessed = guess_model(path) or guess_model(request.flags.get("served_model_name"))
    if guessed is not None:
        return guessed, None
    what = f"{path!r} is not a built-in model" if path else "no model given"
    return model_named(DEFAULT_MODEL), f"model {DEFAULT_MODEL}: {what}"


def _check_tokens(device_tokens: int | None) -> None:
    if device_tokens is not None and not 0 < device_tokens < 1 << 40:
        raise PlanError(f"--device-tokens {device_tokens}: a positive whole number is accepted")


def _setting(
    request: LaunchRequest,
    profile: Profile,
    model: ModelFacts,
    asked: Arguments,
    args: Arguments,
    device_tokens: int | None,
    hbm_budget_bytes: int | None,
    host_available_bytes: int | None,
) -> _Setting:
    split_refused = layer_split_reasons(args, profile, model)
    split = args.attn_cp_size if args.enable_dsa_cache_layer_split and not split_refused else 1
    row = geometry.row_bytes(
        profile,
        model,
        args.kv_cache_dtype,
        args.role,
        args.dsa_prefill_backend or "",
        args.dsa_decode_backend or "",
        args.attn_tp_size,
    )
    return _Setting(
        profile,
        model,
        args,
        row,
        _stages(request.environment, model.layers, args.pp_size),
        split,
        model.mtp_layers if args.is_draft_nextn else 0,
        device_tokens or request.device_tokens,
        hbm_budget_bytes,
        host_available_bytes,
        not request.resolved and not asked.hicache_size and asked.hicache_ratio is None,
    )


def _as_seen_by(profile: Profile, model: ModelFacts) -> ModelFacts:
    """Before 0.5.20 an explicit list of index layers is not read; frequency and offset are."""
    if not (profile.honours_indexer_types and model.listed_index_layers):
        return model
    listed = model.listed_index_layers
    return replace(model, full_index_layers=listed, index_layers=len(listed))


def _stages(environment: Mapping[str, str], layers: int, pp_size: int) -> tuple[tuple[int, int], ...]:
    """Layers of every pipeline stage; `SGLANG_PP_LAYER_PARTITION` wins."""
    partition = environment.get("SGLANG_PP_LAYER_PARTITION")
    if not partition or pp_size == 1:
        return layersplit.ranges(layers, pp_size)
    sizes = [int(size) if size.strip().isdigit() else -1 for size in partition.split(",")]
    if min(sizes) < 0 or sum(sizes) != layers or len(sizes) != pp_size:
        raise PlanError(
            f"SGLANG_PP_LAYER_PARTITION {partition!r}: {pp_size} whole numbers that add up to {layers} are accepted"
        )
    ends = [sum(sizes[: index + 1]) for index in range(pp_size)]
    return tuple(zip([0, *ends[:-1]], ends, strict=True))


def _rank_plans(setting: _Setting) -> tuple[RankPlan, ...]:
    cache: dict[tuple[int, int], tuple[LayerRange, HostPlan | None, DevicePlan]] = {}
    slots = _host_slots(setting)
    plans: list[RankPlan] = []
    for identity in local_ranks(setting.args):
        key = (identity.pp, identity.cp if setting.split > 1 else 0)
        if key not in cache:
            cache[key] = _pools(setting, identity, slots)
        layers, host, device = cache[key]
        plans.append(
            RankPlan(
                identity.rank,
                identity.tp,
                identity.pp,
                identity.dp,
                identity.cp,
                identity.cuda_index,
                layers,
                host,
                device,
            )
        )
    return tuple(plans)


def _host_layers(setting: _Setting, stage: tuple[int, int]) -> int:
    """Layers of a stage's primary host pool: ceil under LayerSplit on every rank, so that token counts agree."""
    return layersplit.max_owned(stage[1] - stage[0], setting.split) + setting.packed_layers


def _shape(setting: _Setting, stage: tuple[int, int]) -> l1.DeviceShape:
    args = setting.args
    return l1.DeviceShape(
        setting.row,
        args.kv_cache_dtype,
        *stage,
        split=setting.split,
        draft_layers=setting.draft_layers,
        keeps_all_index=args.enable_hisparse or args.enable_unified_cache_external_linker,
        hicache_or_pd=args.enable_hierarchical_cache or args.role != "unified",
    )


def _device_tokens(setting: _Setting) -> int | None:
    """Tokens of the L1 pool: the fewest over the stages when an HBM budget decides."""
    if setting.device_tokens is not None:
        return setting.device_tokens
    if setting.hbm_budget_bytes is None:
        return None
    args = setting.args
    return min(
        l1.admitted_tokens(
            setting.hbm_budget_bytes,
            l1.cell_bytes(setting.profile, setting.model, _shape(setting, stage)),
            args.page_size or 1,
            args.max_total_tokens,
        )
        for stage in setting.stages
    )


def _host_slots(setting: _Setting) -> geometry.PoolTokens | None:
    """Slots of the host pools, equal on all ranks: the fewest over the stages, before pages."""
    args = setting.args
    if not args.enable_hierarchical_cache:
        return None
    if args.hicache_size > 0:
        requested = min(
            geometry.requested_by_size(args.hicache_size, setting.row * _host_layers(setting, stage))
            for stage in setting.stages
        )
        return geometry.page_aligned(requested, args.page_size or 1)
    tokens = _device_tokens(setting)
    if tokens is None or args.hicache_ratio is None:
        return None
    return geometry.page_aligned(geometry.requested_by_ratio(_ratio(setting, tokens), tokens), args.page_size or 1)


def _ratio(setting: _Setting, tokens: int) -> float:
    args, ratio = setting.args, setting.args.hicache_ratio or 0.0
    if setting.host_available_bytes is None or not setting.profile.auto_size or not setting.is_sized_automatically:
        return ratio
    device_bytes = max(
        l1.device_pool(setting.profile, setting.model, _shape(setting, stage), tokens, args.page_size or 1).total_bytes
        for stage in setting.stages
    )
    ranks = len(local_ranks(args))
    return auto_ratio(ratio, setting.host_available_bytes, ranks, device_bytes, args.hicache_host_memory_fraction)


def _pools(
    setting: _Setting, identity: RankIdentity, slots: geometry.PoolTokens | None
) -> tuple[LayerRange, HostPlan | None, DevicePlan]:
    stage = setting.stages[identity.pp]
    owned = layersplit.ranges(stage[1] - stage[0], setting.split)[identity.cp if setting.split > 1 else 0]
    start, end = owned[0] + stage[0], owned[1] + stage[0]
    host = _host_plan(setting, stage, (start, end), slots) if setting.args.enable_hierarchical_cache else None
    return LayerRange(start, end, end - start), host, _device_plan(setting, stage, identity, host)


def _host_plan(
    setting: _Setting, stage: tuple[int, int], owned: tuple[int, int], slots: geometry.PoolTokens | None
) -> HostPlan:
    profile, model, args = setting.profile, setting.model, setting.args
    layers = _host_layers(setting, stage)
    index_layers = 0
    if model.index_head_dim:
        own = geometry.index_layers_in(model, *owned) + setting.packed_layers
        index_layers = own if profile.host_index_elision else layers
    dcp = args.dcp_size if profile.dcp_in_host_pool else 1
    host = geometry.host_pool(
        setting.row, layers, index_layers, geometry.index_row_bytes(model), args.page_size or 1, slots, dcp
    )
    if slots is None or not setting.has_host_draft or profile.mtp_packed:
        return host
    draft = geometry.sidecar_pool(profile, model, args.kv_cache_dtype, setting.row, setting.draft_layers, slots)
    return replace(host, draft_bytes=draft.primary_bytes or 0, draft_indexer_bytes=draft.indexer_allocated_bytes or 0)


def _device_plan(
    setting: _Setting, stage: tuple[int, int], identity: RankIdentity, host: HostPlan | None
) -> DevicePlan:
    profile, model, args = setting.profile, setting.model, setting.args
    shape = _shape(setting, stage)
    page_size = args.page_size or 1
    staging = 0
    if host is not None:
        index_row = geometry.index_row_bytes(model)
        staging = geometry.staging_bytes(args.hicache_mem_layout, page_size, host.pages, setting.row, host, index_row)
    tokens = _device_tokens(setting)
    pool = None
    if tokens is not None:
        rank = identity.cp if setting.split > 1 else 0
        pool = l1.device_pool(profile, model, shape, tokens, page_size, rank)
    return DevicePlan(
        bytes_per_token=l1.cell_bytes(profile, model, shape),
        layer_equivalents=layersplit.layer_equivalents(stage[1] - stage[0], setting.split),
        scratch_layers=int(setting.split > 1),
        staging_bytes=staging,
        pool_tokens=tokens,
        pool_bytes=pool.total_bytes if pool else None,
        scratch_bytes=pool.scratch_bytes if pool and setting.split > 1 else None,
    )


def _resolved_launch(request: LaunchRequest, resolved: Resolved, setting: _Setting) -> ResolvedLaunch:
    args = resolved.args
    sized = args.hicache_size > 0
    return ResolvedLaunch(
        role=args.role,
        tp_size=args.tp_size,
        pp_size=args.pp_size,
        dp_size=max(args.dp_size, args.attn_dp_size),
        attn_cp_size=args.attn_cp_size,
        dcp_size=args.dcp_size,
        page_size=args.page_size or 1,
        kv_cache_dtype=args.kv_cache_dtype,
        hicache=args.enable_hierarchical_cache,
        hicache_size_gb=args.hicache_size if sized else None,
        hicache_ratio=None if sized else args.hicache_ratio,
        write_policy=args.hicache_write_policy,
        io_backend=args.hicache_io_backend,
        mem_layout=args.hicache_mem_layout,
        storage_backend=args.hicache_storage_backend,
        layer_split=setting.split > 1,
        speculative=args.speculative_algorithm,
        rewritten=resolved.rewritten,
        assumed=resolved.assumed,
        unknown_flags=request.unknown_flags,
    )


def _layer_split(setting: _Setting, resolved: Resolved) -> LayerSplitPlan:
    layers, split = setting.model.layers, setting.split
    reasons: tuple[str, ...] = ()
    if resolved.args.enable_dsa_cache_layer_split and split == 1:
        reasons = layer_split_reasons(resolved.args, setting.profile, setting.model)
    return LayerSplitPlan(
        active=split > 1,
        ranges=layersplit.ranges(layers, split),
        max_owned=layersplit.max_owned(layers, split),
        layer_equivalents=layersplit.layer_equivalents(layers, split),
        reduction_percent=layersplit.reduction_percent(layers, split),
        reasons=reasons,
    )
