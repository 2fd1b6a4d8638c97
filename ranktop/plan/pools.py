"""The pools of every rank of this node."""

from __future__ import annotations

from msgspec.structs import replace

from ranktop.plan import device as l1
from ranktop.plan import geometry, layersplit
from ranktop.plan.autosize import auto_ratio
from ranktop.plan.plan import DevicePlan, HostPlan, LayerRange, RankIdentity, RankPlan
from ranktop.plan.ranks import local_ranks
from ranktop.plan.setting import Setting


def rank_plans(setting: Setting) -> tuple[RankPlan, ...]:
    """This node's ranks. Those that hold the same layers are computed once."""
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


def _host_layers(setting: Setting, stage: tuple[int, int]) -> int:
    """Layers of a stage's primary host pool: ceil under LayerSplit on every rank, so that token counts agree."""
    return layersplit.max_owned(stage[1] - stage[0], setting.split) + setting.packed_layers


def _shape(setting: Setting, stage: tuple[int, int]) -> l1.DeviceShape:
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


def _device_tokens(setting: Setting) -> int | None:
    """Tokens of the L1 pool: the fewest over the stages when an HBM budget decides."""
    if setting.sizing.device_tokens is not None:
        return setting.sizing.device_tokens
    if setting.sizing.hbm_budget_bytes is None:
        return None
    args = setting.args
    return min(
        l1.admitted_tokens(
            setting.sizing.hbm_budget_bytes,
            l1.cell_bytes(setting.profile, setting.model, _shape(setting, stage)),
            args.page_size or 1,
            args.max_total_tokens,
        )
        for stage in setting.stages
    )


def _host_slots(setting: Setting) -> geometry.PoolTokens | None:
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


def _ratio(setting: Setting, tokens: int) -> float:
    args, ratio = setting.args, setting.args.hicache_ratio or 0.0
    if (
        setting.sizing.host_available_bytes is None
        or not setting.profile.auto_size
        or not setting.is_sized_automatically
    ):
        return ratio
    device_bytes = max(
        l1.device_pool(setting.profile, setting.model, _shape(setting, stage), tokens, args.page_size or 1).total_bytes
        for stage in setting.stages
    )
    ranks = len(local_ranks(args))
    return auto_ratio(
        ratio, setting.sizing.host_available_bytes, ranks, device_bytes, args.hicache_host_memory_fraction
    )


def _pools(
    setting: Setting, identity: RankIdentity, slots: geometry.PoolTokens | None
) -> tuple[LayerRange, HostPlan | None, DevicePlan]:
    stage = setting.stages[identity.pp]
    owned = layersplit.ranges(stage[1] - stage[0], setting.split)[identity.cp if setting.split > 1 else 0]
    start, end = owned[0] + stage[0], owned[1] + stage[0]
    host = _host_plan(setting, stage, (start, end), slots) if setting.args.enable_hierarchical_cache else None
    return LayerRange(start, end, end - start), host, _device_plan(setting, stage, identity, host)


def _host_plan(
    setting: Setting, stage: tuple[int, int], owned: tuple[int, int], slots: geometry.PoolTokens | None
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


def _device_plan(setting: Setting, stage: tuple[int, int], identity: RankIdentity, host: HostPlan | None) -> DevicePlan:
    profile, model, args = setting.profile, setting.model, setting.args
    shape = _shape(setting, stage)
    page_size = args.page_size or 1
    tokens = _device_tokens(setting)
    pool = None
    if tokens is not None:
        rank = identity.cp if setting.split > 1 else 0
        pool = l1.device_pool(profile, model, shape, tokens, page_size, rank)
    return DevicePlan(
        bytes_per_token=l1.cell_bytes(profile, model, shape),
        layer_equivalents=layersplit.layer_equivalents(stage[1] - stage[0], setting.split),
        scratch_layers=int(setting.split > 1),
        staging_bytes=geometry.staging_bytes(model, args.hicache_mem_layout, page_size, host)
        if host is not None
        else 0,
        pool_tokens=tokens,
        pool_bytes=pool.total_bytes if pool else None,
        scratch_bytes=pool.scratch_bytes if pool and setting.split > 1 else None,
    )
