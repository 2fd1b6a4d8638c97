"""Which ranks a launch has on this node, and what SGLang calls them (`scheduler.py`, `utils/common.py`, 0.5.16+)."""

from __future__ import annotations

from ranktop.plan.arguments import Arguments
from ranktop.plan.plan import RankIdentity


def rank_name(args: Arguments, dp: int, pp: int, tp: int) -> str:
    """SGLang's own log tag: only the parts it prints, in its order; `TP0` for a bare scheduler."""
    parts: list[str] = []
    if args.dp_size > 1 or args.attn_dp_size > 1:
        parts.append(f"DP{dp}")
    if args.pp_size > 1:
        parts.append(f"PP{pp}")
    if args.attn_cp_size > 1:
        parts.append(f"ATTN_CP{context_parallel_rank(args, tp)}")
    if args.moe_dp_size > 1:
        parts.append(f"MOE_DP{tp // (args.tp_size // args.moe_dp_size)}")
    if args.tp_size > 1:
        parts.append(f"TP{tp}")
    if args.ep_size > 1:
        in_moe_group = args.tp_size // args.moe_dp_size
        parts.append(f"EP{tp % in_moe_group // max(in_moe_group // args.ep_size, 1)}")
    return " ".join(parts) or "TP0"


def context_parallel_rank(args: Arguments, tp: int) -> int:
    """The attention context-parallel rank of an engine-wide TP rank."""
    return tp // args.attn_tp_size % args.attn_cp_size


def local_ranks(args: Arguments) -> tuple[RankIdentity, ...]:
    """This node's ranks, sorted by dp, pp, cp, tp."""
    nodes_per_stage = max(args.nnodes // args.pp_size, 1)
    stages_here = max(args.pp_size // args.nnodes, 1)
    tp_here = args.tp_size // nodes_per_stage
    first_stage = stages_here * (args.node_rank // nodes_per_stage)
    first_tp = tp_here * (args.node_rank % nodes_per_stage)
    replicas = 1 if args.attn_dp_size > 1 else args.dp_size
    found: list[RankIdentity] = []
    for replica in range(replicas):
        for pp in range(first_stage, first_stage + stages_here):
            for tp in range(first_tp, first_tp + tp_here):
                dp = tp // (args.tp_size // args.attn_dp_size) if args.attn_dp_size > 1 else replica
                cuda_index = (
                    args.base_gpu_id
                    + replica * args.tp_size * args.pp_size * args.gpu_id_step
                    + (pp - first_stage) * tp_here
                    + (tp - first_tp) * args.gpu_id_step
                )
                cp = context_parallel_rank(args, tp)
                found.append(RankIdentity(rank_name(args, dp, pp, tp), tp, pp, dp, cp, cuda_index))
    return tuple(sorted(found, key=lambda rank: (rank.dp, rank.pp, rank.cp, rank.tp)))


def ranks_per_node(args: Arguments) -> int:
    """What the gate of 0.5.19 and later divides by: the launch's ranks over its nodes."""
    replicas = 1 if args.attn_dp_size > 1 else args.dp_size
    return max(args.tp_size * args.pp_size * replicas // args.nnodes, 1)


def rank_tags(args: Arguments) -> tuple[str, ...]:
    """Names of this node's ranks, sorted by dp, pp, cp, tp."""
    return tuple(rank.rank for rank in local_ranks(args))
