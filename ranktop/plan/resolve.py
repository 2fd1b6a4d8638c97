"""SGLang's own resolution of server arguments: what a flag becomes, and why (`server_args.py`, 0.5.16 to 0.5.23)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ranktop.plan.arguments import ARCHITECTURES, Arguments, check_groups
from ranktop.plan.plan import ModelFacts, PlanError, Rewrite
from ranktop.plan.profiles import Profile, version_key

DSA_PAGE_SIZE = 64


class Resolved(Struct, frozen=True):
    """The arguments as SGLang runs them, what was changed on the way, and what was assumed."""

    args: Arguments
    rewritten: tuple[Rewrite, ...] = ()
    assumed: tuple[str, ...] = ()


def resolve(args: Arguments, profile: Profile, model: ModelFacts, arch: str | None) -> Resolved:
    """Applies the rules in SGLang's order. `arch` None assumes sm90 and says so."""
    changes: list[Rewrite] = []
    assumed: list[str] = []
    if arch is not None and arch not in ARCHITECTURES:
        raise PlanError(f"--arch {arch!r}: {', '.join(ARCHITECTURES)} are accepted")
    if arch is None:
        assumed.append("arch sm90: not given")
    args = _parallelism(args, profile, model, changes)
    args = _precision(args, profile, model, ARCHITECTURES[arch or "sm90"], changes, assumed)
    args = _host_pool_defaults(args, profile, model)
    args = _layouts(args, profile, changes)
    args = _optimistic_prefill(args, profile, changes)
    return Resolved(args, tuple(changes), tuple(assumed))


def fill_defaults(args: Arguments, profile: Profile, model: ModelFacts, arch: str | None) -> Resolved:
    """For a launch that a server reported as resolved: only defaults that a report may leave open."""
    assumed: list[str] = []
    args = _precision(args, profile, model, ARCHITECTURES.get(arch or "sm90", 90), [], assumed)
    return Resolved(_host_pool_defaults(args, profile, model), (), tuple(assumed))


def _changed(args: Arguments, changes: list[Rewrite], flag: str, value: Any, why: str) -> Arguments:
    changes.append(Rewrite(flag, getattr(args, flag), value, why))
    return replace(args, **{flag: value})


def _parallelism(args: Arguments, profile: Profile, model: ModelFacts, changes: list[Rewrite]) -> Arguments:
    if args.disaggregation_transfer_backend == "mooncake_tcp":
        why = "mooncake_tcp is Mooncake over TCP; no RDMA device is chosen"
        args = _changed(args, changes, "disaggregation_transfer_backend", "mooncake", why)
    if args.moe_a2a_backend == "deepep" or (args.enable_prefill_cp and args.cp_strategy == "zigzag"):
        # DeepEP, which zigzag CP switches on, spreads the experts over all TP ranks.
        args = replace(args, ep_size=args.tp_size)
    if profile.attn_cp_kept and args.enable_prefill_cp and args.attn_dp_size == 1:
        # From 0.5.22 on --dp-size under prefill CP is read as attention DP.
        args = replace(args, attn_dp_size=args.dp_size)
        check_groups(args)
    if not (args.enable_prefill_cp and model.attention == "dsa" and args.role != "decode"):
        return args
    kept = profile.attn_cp_kept and args.attn_cp_size > 1 and args.cp_strategy == "interleave"
    width = args.tp_size // args.attn_dp_size
    if kept or args.attn_cp_size == width:
        return args
    if args.attn_cp_size == 1:
        return replace(args, attn_cp_size=width)
    why = f"under DSA prefill CP it is set to tp_size // dp_size; for {args.attn_cp_size} give --tp-size "
    why += str(args.attn_cp_size * args.attn_dp_size)
    return _changed(args, changes, "attn_cp_size", width, why)


def _precision(
    args: Arguments, profile: Profile, model: ModelFacts, sm: int, changes: list[Rewrite], assumed: list[str]
) -> Arguments:
    dtype = {"bf16": "bfloat16"}.get(args.kv_cache_dtype, args.kv_cache_dtype)
    if dtype == "auto":
        dtype = "fp8_e4m3" if model.attention == "dsa" and sm >= 100 else "bfloat16"
    args = replace(args, kv_cache_dtype=dtype)
    if model.attention != "dsa":
        return replace(args, page_size=args.page_size or _plain_page_size(args, assumed))
    default = _default_backends(profile, model, dtype, sm)
    prefill, decode = (args.dsa_prefill_backend or default[0], args.dsa_decode_backend or default[1])
    args = replace(args, dsa_prefill_backend=prefill, dsa_decode_backend=decode)
    if args.page_size not in (None, DSA_PAGE_SIZE):
        return _changed(args, changes, "page_size", DSA_PAGE_SIZE, "DSA pools take pages of 64 tokens only")
    return replace(args, page_size=DSA_PAGE_SIZE)


def _default_backends(profile: Profile, model: ModelFacts, dtype: str, sm: int) -> tuple[str, str]:
    if dtype != "fp8_e4m3":
        return ("flashmla_sparse", "fa3" if sm < 100 else "trtllm")
    if sm < 100:
        return ("flashmla_kv", "flashmla_kv")
    glm = (model.architecture or "").startswith("Glm")
    if sm >= 120 and glm and profile.sm120_glm_scaled:
        return ("flashinfer_sparse_mla", "flashinfer_sparse_mla")
    return ("trtllm", "trtllm")


_FORCED_PAGES = {"flashmla": 64, "cutlass_mla": 128, "trtllm_mla": 64, "trtllm_mha": 64}


def _plain_page_size(args: Arguments, assumed: list[str]) -> int:
    page = _FORCED_PAGES.get(args.attention_backend or "", 1)
    assumed.append(f"page_size {page}: not given; the attention backend decides")
    return page


def _host_pool_defaults(args: Arguments, profile: Profile, model: ModelFacts) -> Arguments:
    if args.hicache_size or args.hicache_ratio is not None or not args.enable_hierarchical_cache:
        return args
    ratio = 2.0
    if args.hicache_host_memory_mode == "buffer_only":
        ratio = 1.2
    elif args.role == "decode" and profile.version == "0.5.18" and _retracts_to_host(args, model):
        ratio = 1.0
    return replace(args, hicache_ratio=ratio)


def _retracts_to_host(args: Arguments, model: ModelFacts) -> bool:
    """Whether retracted requests of a decode server go to the host pool (`kv_cache_builder.py`, 0.5.18)."""
    if args.disaggregation_decode_retraction_backup is not None:
        return args.disaggregation_decode_retraction_backup == "host_pool"
    preempts = args.enable_priority_scheduling and not args.disable_priority_preemption
    others = args.disaggregation_decode_enable_radix_cache or args.disaggregation_decode_enable_offload_kvcache
    return model.attention == "gqa" and args.dcp_size == 1 and not preempts and not others


def _layouts(args: Arguments, profile: Profile, changes: list[Rewrite]) -> Arguments:
    if not args.enable_hierarchical_cache:
        return args
    version = version_key(profile.version)
    if args.enable_unified_memory and args.hicache_mem_layout == "page_first_direct" and version >= (0, 5, 23):
        why = "unified memory takes page_first with kernel copies"
        args = _changed(args, changes, "hicache_mem_layout", "page_first", why)
        args = replace(args, hicache_io_backend="kernel")
    if args.hicache_mem_layout == "page_first_direct" and args.hicache_io_backend == "kernel":
        why = "kernel copies do not support page_first_direct"
        args = _changed(args, changes, "hicache_io_backend", "direct", why)
    if args.hicache_mem_layout == "page_first" and args.hicache_io_backend == "direct":
        why = "direct copies do not support page_first"
        args = _changed(args, changes, "hicache_mem_layout", "page_first_direct", why)
    args = _storage_layout(args, version, changes)
    writes_back = args.hicache_host_memory_mode == "buffer_only" and args.hicache_write_policy == "write_back"
    if writes_back and version >= (0, 5, 22):
        why = "buffer_only host memory writes through"
        args = _changed(args, changes, "hicache_write_policy", "write_through", why)
    return _decode_host_receive(args, version, changes)


def _storage_layout(args: Arguments, version: tuple[int, ...], changes: list[Rewrite]) -> Arguments:
    storages = {"mooncake"} | ({"npu_memcache"} if version >= (0, 5, 20) else set())
    exempt = version >= (0, 5, 23) and args.dcp_size > 1 and args.hicache_storage_backend == "mooncake"
    if args.hicache_storage_backend not in storages or args.hicache_mem_layout != "layer_first" or exempt:
        return args
    layout = {"kernel": "page_first", "direct": "page_first_direct"}.get(args.hicache_io_backend)
    if layout is None:
        return args
    why = f"{args.hicache_storage_backend} storage does not support layer_first"
    return _changed(args, changes, "hicache_mem_layout", layout, why)


def _decode_host_receive(args: Arguments, version: tuple[int, ...], changes: list[Rewrite]) -> Arguments:
    threshold = args.disaggregation_decode_host_receive_threshold
    if args.role != "decode" or threshold is None or version < (0, 5, 21):
        return args
    on = threshold < 1.0 if version >= (0, 5, 22) else threshold > 0.0
    if not on or args.hicache_mem_layout == "layer_first":
        return args
    return _changed(args, changes, "hicache_mem_layout", "layer_first", "decode host receive needs layer_first")


def _optimistic_prefill(args: Arguments, profile: Profile, changes: list[Rewrite]) -> Arguments:
    if args.optimistic_prefill_attempts <= 0 or args.role != "prefill":
        return args
    why = _optimistic_refusal(args, version_key(profile.version))
    return _changed(args, changes, "optimistic_prefill_attempts", 0, why) if why else args


def _optimistic_refusal(args: Arguments, version: tuple[int, ...]) -> str | None:
    """Why optimistic prefill is switched off, None when it stays on."""
    if args.pp_size > 1:
        return "optimistic prefill does not support pipeline parallelism"
    if not args.enable_hierarchical_cache:
        return None
    l2_only, policy = args.hicache_storage_backend is None, args.hicache_write_policy
    if version < (0, 5, 17):
        return "optimistic prefill is off with HiCache"
    if version < (0, 5, 21):
        if l2_only and policy == "write_back":
            return None
        return "Optimistic prefill only supports L2 hierarchical cache with write-back policy"
    if l2_only and policy in ("write_back", "write_through"):
        return None
    if not l2_only and args.hicache_host_memory_mode == "buffer_only" and policy == "write_through":
        return None
    return "Optimistic prefill supports L2 write-back/write-through or L3 buffer-only write-through hierarchical cache"
