"""Every rank of one sample: its process, its GPU, its pools and what SGLang says of it, as lines.

What moves every second is made anew every second: GPU memory, a process's memory. The rest stands until a page, a map,
a placement or a plan changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ranktop.plan.plan import RankPlan
from ranktop.reconcile.digest import PageDigest
from ranktop.reconcile.found_ranks import FoundRank, found_ranks
from ranktop.reconcile.judge import NodeView
from ranktop.reconcile.lines.hbm import ToldMemory, gpu_memory, told_memory
from ranktop.reconcile.lines.host import expected_pools, missing_pool_lines, pool_lines, process_lines
from ranktop.reconcile.lines.layers import layer_line
from ranktop.reconcile.lines.logged import logged_pool_lines
from ranktop.reconcile.lines.pd import pd_lines
from ranktop.reconcile.lines.peaks import RankHbm, rank_memory
from ranktop.reconcile.lines.placement import local_line, near_nodes
from ranktop.reconcile.lines.rates import rate_lines
from ranktop.reconcile.lines.tokens import token_lines
from ranktop.reconcile.lives import RankKey
from ranktop.reconcile.logged import LoggedPool
from ranktop.reconcile.logged_hbm import LoggedHbm
from ranktop.reconcile.phases import ServerPhases
from ranktop.reconcile.pins import Pins, judge_pins
from ranktop.reconcile.pools import match_pools
from ranktop.reconcile.reported import reported
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.verdict import Line, RankVerdict, ServerVerdict, Source
from ranktop.sample import Bootstrap, Event, RankTag, Sample, ServerInfo
from ranktop.sample import Mapping as MappedPool


class _Common(NamedTuple):
    """What all ranks of a sample share."""

    source: Source
    near: Mapping[int, frozenset[int]]
    """By the NUMA node of a GPU: the nodes that are near to it."""
    why_no_gpu: str
    why_no_maps: str


class _Told(NamedTuple):
    """What SGLang's page, its server info and its log say of a rank."""

    memory: ToldMemory
    lines: tuple[Line, ...]


class _Mapped(NamedTuple):
    """A rank's pools. `matched_bytes` is what is mapped for pools of the plan."""

    matched_bytes: int
    pools: tuple[Line, ...]


def judge_ranks(
    view: NodeView,
    servers: Sequence[ServerVerdict],
    phases: Mapping[str, ServerPhases],
    known: Mapping[RankKey, RankHbm],
) -> tuple[tuple[RankVerdict, ...], dict[RankKey, RankHbm]]:
    """Every rank that a process or a plan knows, in rank order within its server, and what is remembered of its HBM.

    `known` is what was remembered at the sample before.
    """
    sample = view.sample
    distances = {node.node: dict(node.distances) for node in sample.numa or ()}
    common = _Common(
        "simulated" if sample.gpus is not None and sample.gpus.source == "simulated" else "measured",
        {node: near_nodes(node, distances) for node in distances},
        _why_no_gpu(sample),
        next((state.detail for state in sample.sources if state.part == "mappings"), ""),
    )
    found = [(rank, _mapped(view, rank, common)) for rank in found_ranks(view, servers, phases)]
    pins = _pins(sample, servers, sum(mapped.matched_bytes for _, mapped in found))
    ranks: list[RankVerdict] = []
    held: dict[RankKey, RankHbm] = {}
    for rank, mapped in found:
        verdict, held[rank.key] = _judge(view, rank, mapped, known.get(rank.key), pins, common)
        ranks.append(verdict)
    return tuple(ranks), held


def _judge(
    view: NodeView, rank: FoundRank, mapped: _Mapped, known: RankHbm | None, pins: Pins, common: _Common
) -> tuple[RankVerdict, RankHbm]:
    key, process, plan, gpu = rank.key, rank.process, rank.plan, rank.gpu
    told = _told(view, rank)
    pid = process.pid if process is not None else None
    logged = rank.of.logged if process is None else None
    memory = view.unchanged.of(
        ("memory", key),
        rank_memory,
        gpu_memory(gpu, common.why_no_gpu),
        common.source,
        told.memory,
        logged.device_free_bytes.get(key[1]) if logged is not None else None,
        known,
        pid,
        rank.of.phases.current(key[1]),
        view.thresholds,
    )
    own = view.unchanged.of(("process", key), process_lines, process, pins, plan)
    local = _local(view, rank, common)
    verdict = RankVerdict(
        server=key[0],
        rank=key[1],
        pid=pid,
        gpu=gpu.gpu.index if gpu else None,
        cuda_index=plan.cuda_index if plan else None,
        numa=gpu.gpu.numa_node if gpu else None,
        state=process.state if process else None,
        lines=(*memory.lines, *mapped.pools, *own, local, *told.lines, *memory.peak_lines),
        peaks=memory.peaks,
    )
    return verdict, memory.remembered


def _told(view: NodeView, rank: FoundRank) -> _Told:
    of, name = rank.of, rank.key[1]
    return view.unchanged.of(
        ("told", rank.key),
        _told_anew,
        of.page,
        rank.tag,
        rank.plan,
        of.info,
        of.logged_hbm.get(name),
        of.bootstrap,
        name in of.gave_up,
        of.layer_plans.get(name),
        of.server.role,
        of.is_stale,
    )


def _told_anew(
    page: PageDigest | None,
    tag: RankTag,
    plan: RankPlan | None,
    info: ServerInfo | None,
    logged: LoggedHbm | None,
    bootstrap: Bootstrap | None,
    has_given_up: bool,
    layers: Event | None,
    role: str | None,
    is_stale: bool,
) -> _Told:
    said = reported(page.series if page else None, tag, info)
    # The log counts where the rank does not report its own.
    is_own = said.weights_bytes is not None and not said.memory_is_group
    lines = (
        *token_lines(plan, said, is_stale),
        *rate_lines(page.gains if page else None, tag, is_stale),
        *pd_lines(page.series if page else None, role, tag, bootstrap, has_given_up, is_stale),
        layer_line(plan, layers),
    )
    return _Told(told_memory(plan, said, None if is_own else logged), lines)


def _mapped(view: NodeView, rank: FoundRank, common: _Common) -> _Mapped:
    sample, process = view.sample, rank.process
    logged = rank.of.logged
    return view.unchanged.of(
        ("mapped", rank.key),
        _mapped_anew,
        rank.plan,
        sample.mappings.get(process.pid) if process else None,
        process.pid if process else None,
        logged.pools.get(rank.key[1], ()) if logged is not None else (),
        common.why_no_maps,
        view.thresholds,
    )


def _mapped_anew(
    plan: RankPlan | None,
    mappings: tuple[MappedPool, ...] | None,
    pid: int | None,
    logged: Sequence[LoggedPool],
    why_no_maps: str,
    thresholds: Thresholds,
) -> _Mapped:
    """The pools that are mapped; where maps cannot be read, what was logged."""
    matches = match_pools(expected_pools(plan), mappings) if mappings is not None else ()
    if mappings is not None:
        pools = pool_lines(plan, matches, thresholds)
    elif logged:
        pools = logged_pool_lines(plan, logged)
    else:
        pools = missing_pool_lines(plan, _why_no_maps(pid, why_no_maps))
    return _Mapped(sum(match.mapping.size_bytes for match in matches if match.mapping is not None), pools)


def _local(view: NodeView, rank: FoundRank, common: _Common) -> Line:
    process, gpu = rank.process, rank.gpu
    gpu_node = gpu.gpu.numa_node if gpu else None
    return view.unchanged.of(
        ("local", rank.key),
        local_line,
        view.sample.placements.get(process.pid, ()) if process else (),
        gpu_node,
        common.near.get(gpu_node) or frozenset({gpu_node}) if gpu_node is not None else frozenset[int](),
        view.thresholds,
        "no process of this rank" if process is None else "no pages sampled yet",
    )


def _pins(sample: Sample, servers: Sequence[ServerVerdict], matched_bytes: int) -> Pins:
    if sample.gpus is not None and sample.gpus.source == "simulated":
        return Pins("unknown", None, "a demo pins nothing: its GPUs are simulated")
    loading = any(not server.is_ready for server in servers)
    return judge_pins(sample.host, matched_bytes, has_driver=sample.gpus is not None, loading=loading)


def _why_no_gpu(sample: Sample) -> str:
    state = next((state for state in sample.sources if state.part == "gpus"), None)
    if sample.gpus is not None:
        return "no GPU of this node could be told to be this rank's"
    return state.detail if state is not None and state.detail else "NVML has not answered yet"


def _why_no_maps(pid: int | None, told: str) -> str:
    if pid is None:
        return "no process of this rank"
    return told or f"/proc/{pid}/maps was not readable (same user, CAP_SYS_PTRACE or root)"
