"""What all ranks of a launch share: the row, the stages, who splits layers with whom, the draft."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from msgspec import Struct

from ranktop.plan import geometry
from ranktop.plan.arguments import Arguments
from ranktop.plan.eligibility import layer_split_reasons
from ranktop.plan.launch import LaunchRequest
from ranktop.plan.plan import ModelFacts, PlanError
from ranktop.plan.profiles import Profile


class Sizing(Struct, frozen=True):
    """What is known of the machine that the pools' sizes depend on; None where nobody said."""

    device_tokens: int | None = None
    hbm_budget_bytes: int | None = None
    host_available_bytes: int | None = None


class Setting(Struct, frozen=True):
    """What every rank of the launch shares."""

    profile: Profile
    model: ModelFacts
    args: Arguments
    row: int
    stages: tuple[tuple[int, int], ...]
    split: int
    """Ranks that share the layers; 1 without LayerSplit."""
    draft_layers: int
    sizing: Sizing
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


def setting_of(
    request: LaunchRequest,
    profile: Profile,
    model: ModelFacts,
    asked: Arguments,
    args: Arguments,
    sizing: Sizing,
) -> Setting:
    """`asked` decides what was given, `args` what runs."""
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
    return Setting(
        profile,
        model,
        args,
        row,
        stage_layers(request.environment, model.layers, args.pp_size),
        split,
        model.mtp_layers if args.is_draft_nextn else 0,
        sizing,
        not request.resolved and not asked.hicache_size and asked.hicache_ratio is None,
    )


def stage_layers(environment: Mapping[str, str], layers: int, pp_size: int) -> tuple[tuple[int, int], ...]:
    """Layers of every pipeline stage, half-open; `SGLANG_PP_LAYER_PARTITION` wins.

    Without it the last `layers % pp_size` stages hold one layer more, not the first as under LayerSplit
    (`get_pp_indices`, `distributed/utils.py`, 0.5.16 to 0.5.23).
    """
    if pp_size > layers:
        raise PlanError(f"--pp-size {pp_size}: the model has {layers} layers (give no more stages than that)")
    partition = environment.get("SGLANG_PP_LAYER_PARTITION")
    if not partition or pp_size == 1:
        base, extra = divmod(layers, pp_size)
        starts = [stage * base + max(stage - (pp_size - extra), 0) for stage in range(pp_size + 1)]
        return tuple(pairwise(starts))
    sizes = [int(size) if size.strip().isdigit() else 0 for size in partition.split(",")]
    if min(sizes) < 1 or sum(sizes) != layers or len(sizes) != pp_size:
        raise PlanError(
            f"SGLANG_PP_LAYER_PARTITION {partition!r}: {pp_size} whole numbers from 1 on that add up to {layers} "
            "are accepted"
        )
    ends = [sum(sizes[: index + 1]) for index in range(pp_size)]
    return tuple(zip([0, *ends[:-1]], ends, strict=True))
