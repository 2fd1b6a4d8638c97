"""The server arguments that the plan reads, with SGLang's defaults where a flag is not given."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec import Struct

from ranktop.plan.flags import LEGACY_VALUES
from ranktop.plan.launch import LaunchRequest
from ranktop.plan.plan import PlanError, Role

MAX_RANKS = 4096
"""More is a typing error, not a cluster."""

ARCHITECTURES = {"sm90": 90, "sm100": 100, "sm120": 120}

_ROLES: dict[Any, Role] = {"null": "unified", "prefill": "prefill", "decode": "decode"}


class Arguments(Struct, frozen=True):
    """Server arguments by SGLang's field names; before `resolve` as asked, after it as SGLang runs them."""

    role: Role = "unified"
    tp_size: int = 1
    pp_size: int = 1
    dp_size: int = 1
    attn_dp_size: int = 1
    attn_cp_size: int = 1
    moe_dp_size: int = 1
    ep_size: int = 1
    dcp_size: int = 1
    moe_a2a_backend: str | None = None
    nnodes: int = 1
    node_rank: int = 0
    base_gpu_id: int = 0
    gpu_id_step: int = 1
    numa_node: tuple[str, ...] = ()
    page_size: int | None = None
    kv_cache_dtype: str = "auto"
    attention_backend: str | None = None
    dsa_prefill_backend: str | None = None
    dsa_decode_backend: str | None = None
    max_total_tokens: int | None = None
    enable_hierarchical_cache: bool = False
    hicache_size: int | float = 0
    hicache_ratio: int | float | None = None
    hicache_write_policy: str = "write_through"
    hicache_io_backend: str = "kernel"
    hicache_mem_layout: str = "page_first"
    hicache_storage_backend: str | None = None
    hicache_storage_backend_extra_config: str | None = None
    hicache_storage_prefetch_policy: str = "timeout"
    hicache_host_memory_mode: str = "cache"
    hicache_host_memory_fraction: int | float | None = None
    disable_radix_cache: bool = False
    enable_lmcache: bool = False
    enable_hisparse: bool = False
    enable_unified_memory: bool = False
    enable_unified_cache_external_linker: bool = False
    enable_kv_cache_sharding: bool = False
    enable_two_batch_overlap: bool = False
    enable_dp_attention: bool = False
    enable_prefill_cp: bool = False
    cp_strategy: str | None = None
    enable_dsa_cache_layer_split: bool = False
    disaggregation_transfer_backend: str = "mooncake"
    disaggregation_decode_enable_offload_kvcache: bool = False
    disaggregation_decode_enable_radix_cache: bool = False
    disaggregation_decode_retraction_backup: str | None = None
    disaggregation_decode_host_receive_threshold: int | float | None = None
    optimistic_prefill_attempts: int = 0
    enable_priority_scheduling: bool = False
    disable_priority_preemption: bool = False
    speculative_algorithm: str | None = None
    speculative_eagle_topk: int | None = None
    enable_metrics: bool = False
    enable_metrics_for_all_schedulers: bool = False
    enable_cache_report: bool = False
    export_metrics_to_file: bool = False

    @property
    def is_draft_nextn(self) -> bool:
        """NextN layers of the model itself speculate (EAGLE, not EAGLE3)."""
        return self.speculative_algorithm in ("EAGLE", "NEXTN")

    @property
    def attn_tp_size(self) -> int:
        """Ranks over which attention heads are split."""
        return self.tp_size // (self.attn_dp_size * self.attn_cp_size)


_COUNTS = tuple(name for name in Arguments.__struct_fields__ if name.endswith("_size") and name != "hicache_size")
_CHOICES = {
    "hicache_write_policy": ("write_back", "write_through", "write_through_selective"),
    "hicache_io_backend": ("direct", "kernel", "kernel_ascend"),
    "hicache_mem_layout": (
        "layer_first",
        "page_first",
        "page_first_direct",
        "page_first_kv_split",
        "page_head",
    ),
    "hicache_storage_prefetch_policy": ("best_effort", "wait_complete", "timeout"),
    "kv_cache_dtype": ("auto", "bf16", "bfloat16", "fp8_e4m3", "fp8_e5m2", "fp4_e2m1"),
    "cp_strategy": ("zigzag", "interleave"),
}


def arguments_of(request: LaunchRequest) -> Arguments:
    """The arguments asked for. Raises PlanError for a value that no server can have."""
    flags = request.flags
    known = {name: flags[name] for name in Arguments.__struct_fields__ if flags.get(name) is not None}
    mode = flags.get("disaggregation_mode", "null")
    if mode not in _ROLES:
        raise PlanError(f"--disaggregation-mode {mode!r}: null, prefill or decode is accepted")
    known["role"] = _ROLES[mode]
    if "cp_strategy" in known:
        known["cp_strategy"] = LEGACY_VALUES.get(known["cp_strategy"], known["cp_strategy"])
    elif flags.get("enable_prefill_cp") and flags.get("dsa_prefill_cp_mode") in LEGACY_VALUES:
        known["cp_strategy"] = LEGACY_VALUES[flags["dsa_prefill_cp_mode"]]
    if known.get("enable_dp_attention"):
        known["attn_dp_size"] = max(known.get("attn_dp_size", 1), known.get("dp_size", 1))
    args = _checked_types(known)
    check_groups(args)
    return args


def _checked_types(known: dict[str, Any]) -> Arguments:
    for name, choices in _CHOICES.items():
        value = known.get(name)
        if value is not None and value not in choices:
            raise PlanError(f"{flag_name(name)} {value!r}: {', '.join(choices)} are accepted")
    for name in ("hicache_size", "hicache_ratio", "hicache_host_memory_fraction"):
        value = known.get(name)
        if value is not None and not (isinstance(value, int | float) and math.isfinite(value) and 0 <= value < 1e6):
            raise PlanError(f"{flag_name(name)} {value!r}: a number from 0 to 1000000 is accepted")
    for name in (*_COUNTS, "nnodes"):
        value = known.get(name)
        if value is not None and not (isinstance(value, int) and 1 <= value <= MAX_RANKS):
            raise PlanError(f"{flag_name(name)} {value!r}: a whole number from 1 to {MAX_RANKS} is accepted")
    for name, least in (("base_gpu_id", 0), ("gpu_id_step", 1)):
        value = known.get(name)
        if isinstance(value, int) and value < least:
            raise PlanError(f"{flag_name(name)} {value}: a whole number from {least} on is accepted")
    if "numa_node" in known:
        known["numa_node"] = [str(node) for node in known["numa_node"]]
    try:
        return msgspec.convert(known, Arguments, strict=False)
    except msgspec.ValidationError as error:
        # "Expected `int`, got `str` - at `$.page_size`"
        what, _, where = str(error).partition(" - at `$.")
        field = where.rstrip("`")
        raise PlanError(f"{flag_name(field)} {known.get(field)!r}: {what[:1].lower()}{what[1:]}") from None


def check_groups(args: Arguments) -> None:
    """Raises PlanError when the parallel sizes do not divide each other."""
    groups = args.attn_dp_size * args.attn_cp_size
    if args.tp_size % groups:
        raise PlanError(
            f"--tp-size {args.tp_size}: not divisible by attention DP {args.attn_dp_size} x "
            f"--attn-cp-size {args.attn_cp_size}; give a multiple of {groups}"
        )
    if not 0 <= args.node_rank < args.nnodes:
        raise PlanError(f"--node-rank {args.node_rank}: 0 to {args.nnodes - 1} is accepted with --nnodes {args.nnodes}")
    ranks = args.tp_size * args.pp_size * args.dp_size
    if ranks > MAX_RANKS:
        raise PlanError(f"--tp-size x --pp-size x --dp-size is {ranks}: at most {MAX_RANKS} ranks are planned")
    if args.nnodes > 1 and (args.tp_size * args.pp_size) % args.nnodes:
        raise PlanError(
            f"--nnodes {args.nnodes}: does not divide the {args.tp_size * args.pp_size} ranks of "
            f"--tp-size {args.tp_size} x --pp-size {args.pp_size}"
        )


def flag_name(field: str) -> str:
    """`--some-flag` for a field name."""
    return "--" + field.replace("_", "-")
