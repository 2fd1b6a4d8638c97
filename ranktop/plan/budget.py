"""The plan of one launch: every rank's pools, this node's sums, the host gate. Pure; nothing is read here."""

from __future__ import annotations

from msgspec.structs import replace

from ranktop.plan import layersplit
from ranktop.plan.arguments import arguments_of
from ranktop.plan.eligibility import check_eligibility, layer_split_reasons
from ranktop.plan.gate import node_plan
from ranktop.plan.l3 import l3_plan
from ranktop.plan.launch import LaunchRequest
from ranktop.plan.launchrules import launch_findings
from ranktop.plan.models import DEFAULT_MODEL, guess_model, model_named
from ranktop.plan.notes import plan_notes
from ranktop.plan.plan import (
    LayerSplitPlan,
    ModelFacts,
    Plan,
    PlanError,
    ResolvedLaunch,
)
from ranktop.plan.pools import rank_plans
from ranktop.plan.profiles import Profile, profile_for
from ranktop.plan.ranks import ranks_per_node
from ranktop.plan.resolve import Resolved, fill_defaults, resolve
from ranktop.plan.setting import Setting, Sizing, setting_of


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
    args = resolved.args
    sizing = Sizing(device_tokens or request.device_tokens, hbm_budget_bytes, host_available_bytes)
    setting = setting_of(request, profile, facts, asked, args, sizing)
    ranks = rank_plans(setting)
    plan = Plan(
        sglang=sglang,
        model=facts,
        launch=_resolved_launch(request, resolved, setting),
        ranks=ranks,
        node=node_plan(profile, [rank.host for rank in ranks], ranks_per_node(args)),
        layer_split=_layer_split(setting, resolved),
        l3=l3_plan(
            profile,
            facts.attention,
            args.page_size or 1,
            args.hicache_storage_prefetch_policy,
            args.hicache_storage_backend_extra_config,
        ),
        eligibility=check_eligibility(resolved, profile, facts, request),
    )
    plan = replace(plan, is_model_assumed=assumed_model is not None)
    plan = replace(plan, notes=plan_notes(plan, profile, args, is_sized_automatically=setting.is_sized_automatically))
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


def _as_seen_by(profile: Profile, model: ModelFacts) -> ModelFacts:
    """Before 0.5.20 an explicit list of index layers is not read; frequency and offset are."""
    if not (profile.honours_indexer_types and model.listed_index_layers):
        return model
    listed = model.listed_index_layers
    return replace(model, full_index_layers=listed, index_layers=len(listed))


def _resolved_launch(request: LaunchRequest, resolved: Resolved, setting: Setting) -> ResolvedLaunch:
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
        numa_node=args.numa_node,
        rewritten=resolved.rewritten,
        assumed=resolved.assumed,
        unknown_flags=request.unknown_flags,
    )


def _layer_split(setting: Setting, resolved: Resolved) -> LayerSplitPlan:
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
