"""What surprises about a plan, in one sentence each."""

from __future__ import annotations

from ranktop.plan.arguments import Arguments
from ranktop.plan.l3 import HIRADIX
from ranktop.plan.layersplit import layer_equivalents
from ranktop.plan.plan import GB, Plan
from ranktop.plan.profiles import Profile


def plan_notes(plan: Plan, profile: Profile, args: Arguments, *, is_sized_automatically: bool) -> tuple[str, ...]:
    """Notes in reading order: size, indexer, LayerSplit, draft, kernels, storage, what is left out."""
    notes = _size_notes(plan, args)
    if is_sized_automatically and profile.auto_size and plan.launch.hicache:
        notes.append(
            f"Neither size nor ratio is given: SGLang takes ratio {args.hicache_ratio:g} or what 0.8 of a rank's share "
            "of free host memory allows, whichever is less; --memory computes it."
        )
    notes += _indexer_notes(plan, profile)
    notes += _layer_split_notes(plan, profile)
    notes += _draft_notes(plan, profile)
    notes += _kernel_notes(plan, profile)
    notes += _storage_notes(plan, profile, args)
    notes += _uncovered_notes(plan, args)
    return (*notes, *plan.model.notes)


def _uncovered_notes(plan: Plan, args: Arguments) -> list[str]:
    notes: list[str] = []
    if plan.is_model_assumed:
        notes.append(f"The model is assumed to be {plan.model.name}; say --model NAME or --model-config FILE if not.")
    if args.kv_cache_dtype == "fp4_e2m1":
        notes.append("FP4 rows are not modelled: the sizes here are those of BF16.")
    if args.enable_hisparse:
        notes.append("HiSparse has a host pool of its own; the plan leaves it out.")
    if args.role == "decode" and plan.model.attention == "gqa" and not args.enable_hierarchical_cache:
        notes.append("A decode worker may hold a host pool for retracted requests; the plan leaves it out.")
    return notes


def _size_notes(plan: Plan, args: Arguments) -> list[str]:
    notes: list[str] = []
    host = plan.ranks[0].host if plan.ranks else None
    if host is None:
        return notes
    if args.hicache_size:
        notes.append(
            "--hicache-size is decimal GB for the primary pool of one rank: every rank allocates it again, and the "
            "page rule n // page + 1 gives 1 to a whole page of tokens more than asked."
        )
        if args.hicache_size != int(args.hicache_size):
            notes.append("SGLang 0.5.18 takes whole GB for --hicache-size; the fraction is planned, not accepted.")
        if plan.launch.pp_size > 1:
            notes.append(
                "All stages take the fewest tokens of any stage; a stage of fewer layers uses less than the size."
            )
    elif host.tokens is None:
        notes.append(
            f"--hicache-ratio {args.hicache_ratio:g} needs the L1 pool's tokens: give --device-tokens from the log line"
            " `KV Cache is allocated ... #tokens: N`, or read the plan of a running server."
        )
    if plan.node.allocated_bytes is not None:
        notes.append("GB is 1e9 bytes, GiB is 2^30: the reserve of 10 GiB is 10.74 GB.")
    if plan.node.ranks == 8 and plan.model.name == "glm-5.2" and args.hicache_size in (64, 96, 120):
        notes.append("The audit's column of 8 ranks multiplies a rounded figure: its last digit is off.")
    return notes


def _indexer_notes(plan: Plan, profile: Profile) -> list[str]:
    host = plan.ranks[0].host if plan.ranks else None
    if host is None or not host.index_layers:
        return []
    percent = 100 * host.index_bytes_per_token / host.bytes_per_token
    notes = [
        f"The DSA indexer pool comes on top of the size: {host.index_bytes_per_token:,} bytes a token beside "
        f"{host.bytes_per_token:,}, +{percent:.6f} %."
    ]
    if not profile.host_index_elision and plan.model.full_index_layers:
        notes.append(
            f"Until 0.5.21 the indexer pool holds all {plan.model.layers} layers; from 0.5.22 only the "
            f"{plan.model.index_layers} that compute an index."
        )
    if host.indexer_bytes is not None and host.indexer_allocated_bytes is not None:
        extra = host.indexer_allocated_bytes - host.indexer_bytes
        notes.append(
            f"The indexer maps one page a layer more than SGLang checks and logs: {extra} bytes a rank, which the "
            "audit's tables leave out."
        )
    if host.row_bytes == 576 and plan.launch.kv_cache_dtype == "fp8_e4m3" and plan.model.attention == "dsa":
        notes.append("FP8 rows are raw here (576 bytes: a trtllm or tilelang backend), not the audit's 656.")
    return notes


def _layer_split_notes(plan: Plan, profile: Profile) -> list[str]:
    split = plan.layer_split
    if not split.active or not plan.ranks:
        return []
    equivalents = layer_equivalents(plan.model.layers, plan.launch.attn_cp_size)
    saved = plan.model.layers / equivalents
    notes = [
        f"LayerSplit keeps {split.max_owned} layers and 1 scratch layer of {plan.model.layers}: at most "
        f"{split.reduction_percent:.4f} % less, of the L1 pool only; weights, graphs and workspaces stay."
    ]
    if plan.launch.attn_cp_size == 4 and plan.model.name == "glm-5.2":
        notes.append(
            "The published cell of 0.77 to 0.20 GB (8192 tokens, CP4) is BF16, in GiB, of owned layers only: 74.026 % "
            "is its rounding of 74.36 %; with the scratch layer 0.2073 GiB and 73.08 %."
        )
    if not profile.layersplit_cell_divides_index and plan.model.index_head_dim:
        unsplit = _unsplit_cell(plan)
        gain = unsplit / plan.ranks[0].device.bytes_per_token
        notes.append(
            f"0.5.18 to 0.5.21 charge the indexer of all layers to every LayerSplit token: {gain:.2f}x the tokens are "
            f"admitted, not {saved:.2f}x; the rest of the HBM stays unused."
        )
    return notes


def _unsplit_cell(plan: Plan) -> int:
    host_row = plan.ranks[0].host.row_bytes if plan.ranks[0].host else None
    model = plan.model
    index_row = (model.index_head_dim or 0) + 4
    split_cell = plan.ranks[0].device.bytes_per_token
    row = host_row or (split_cell - index_row * model.layers) // plan.layer_split.layer_equivalents
    return (row + index_row) * model.layers


def _draft_notes(plan: Plan, profile: Profile) -> list[str]:
    host = plan.ranks[0].host if plan.ranks else None
    if host is None or plan.launch.speculative is None:
        return []
    if host.draft_bytes:
        return [
            f"Until 0.5.17 the draft has a host pool of its own on top of the size: {host.draft_bytes / GB:.2f} GB a "
            "rank, without an indexer."
        ]
    if profile.mtp_packed and host.layers > plan.ranks[0].layers.owned:
        return ["The MTP layer is packed into the same pool: the size stays, the tokens become fewer."]
    return []


def _kernel_notes(plan: Plan, profile: Profile) -> list[str]:
    host, multiple = plan.ranks[0].host if plan.ranks else None, profile.jit_one_layer_row_multiple
    if host is None or multiple is None or plan.launch.io_backend != "kernel" or host.row_bytes % multiple == 0:
        return []
    return [
        f"Expect the log line `Unsupported element_size = {host.row_bytes} for JIT HiCache kernel`: the row is no "
        f"multiple of {multiple}, another copy kernel runs."
    ]


def _storage_notes(plan: Plan, profile: Profile, args: Arguments) -> list[str]:
    if args.hicache_storage_backend is None:
        return []
    seconds = plan.l3.deadline_seconds["8192"]
    if plan.l3.cache == "HiRadixCache":
        return [
            f"L3 prefetch deadline here is 2.0 s + 0.1 s per 1024 tokens, at most 30 s (HiRadixCache): {seconds:.1f} s "
            "for 8192 tokens. From 0.5.19 on the same server gets 1.0 s + 0.25 s, uncapped."
        ]
    return [
        f"L3 prefetch deadline here is 1.0 s + 0.25 s per 1024 tokens, uncapped (UnifiedRadixCache): {seconds:.1f} s "
        f"for 8192 tokens, from {profile.prefetch_clock}. The audit's 2 + 0.1, at most 30 s, gives "
        f"{HIRADIX.seconds(8192):.1f} s and belongs to HiRadixCache, which serves no DSA model."
    ]
