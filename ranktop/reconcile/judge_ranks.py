"""Every rank of one sample: its process, its GPU, its pools and what SGLang says of it, as lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ranktop.plan.plan import RankPlan
from ranktop.reconcile.digest import RankDigest
from ranktop.reconcile.gpus import GpuFinder, RankGpu
from ranktop.reconcile.judge import NodeView
from ranktop.reconcile.lines.hbm import HbmLines, gpu_memory, hbm_lines, told_memory
from ranktop.reconcile.lines.host import (
    expected_pools,
    missing_pool_lines,
    pool_lines,
    process_lines,
    process_memory,
)
from ranktop.reconcile.lines.layers import layer_line
from ranktop.reconcile.lines.logged import logged_free_line, logged_pool_lines
from ranktop.reconcile.lines.pd import pd_lines
from ranktop.reconcile.lines.peaks import PeakedMemory, RankHbm, follow_hbm, lines_with_peaks
from ranktop.reconcile.lines.placement import local_line, near_nodes
from ranktop.reconcile.lines.rates import rate_lines
from ranktop.reconcile.lines.tokens import token_lines
from ranktop.reconcile.lives import RankKey
from ranktop.reconcile.logged import tag_of
from ranktop.reconcile.logged_hbm import LoggedHbm, logged_hbm
from ranktop.reconcile.pageranks import page_tags
from ranktop.reconcile.phases import ServerPhases
from ranktop.reconcile.pins import Pins, judge_pins
from ranktop.reconcile.pools import PoolMatch, match_pools
from ranktop.reconcile.reported import Reported, reported
from ranktop.reconcile.verdict import Line, RankVerdict, ServerVerdict, Source
from ranktop.sample import Mapping as MappedPool
from ranktop.sample import Processes, RankProcess, RankTag, Sample


class _Common(NamedTuple):
    """What all ranks of a sample share."""

    pins: Pins
    gpus: GpuFinder
    source: Source
    near: Mapping[int, frozenset[int]]
    """By the NUMA node of a GPU: the nodes that are near to it."""


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
    processes = sample.processes or Processes()
    found: list[tuple[ServerVerdict, str, RankProcess | None, RankPlan | None]] = []
    for server in servers:
        live = {str(rank.tag): rank for rank in processes.ranks if rank.server == server.id}
        planned = {rank.rank: rank for rank in server.plan.ranks} if server.plan else {}
        tags = {**planned, **live} or dict.fromkeys(_told_tags(view, server.id))
        in_order = sorted(tags, key=lambda tag: _order(tag, live, planned))
        found += [(server, tag, live.get(tag), planned.get(tag)) for tag in in_order]
    matches = {
        (server.id, tag): _matches(view, (server.id, tag), process, plan) for server, tag, process, plan in found
    }
    distances = {node.node: dict(node.distances) for node in sample.numa or ()}
    common = _Common(
        _pins(sample, servers, matches),
        GpuFinder(sample.gpus),
        "simulated" if sample.gpus is not None and sample.gpus.source == "simulated" else "measured",
        {node: near_nodes(node, distances) for node in distances},
    )
    stale = {server.id: _is_stale(sample, "metrics", server.id) for server in servers}
    ranks: list[RankVerdict] = []
    held: dict[RankKey, RankHbm] = {}
    for server, tag, process, plan in found:
        key = (server.id, tag)
        told = _told(view, server, tag, _rank_tag(tag, process, plan), plan, stale[server.id])
        memory, gpu = _memory(view, key, process, plan, told.said, common)
        of_server = phases.get(server.id)
        phase = of_server.current(tag) if of_server is not None else "start"
        pid = process.pid if process is not None else None
        held[key] = follow_hbm(known.get(key), pid, memory, phase)
        memory_lines = view.unchanged.of(("peaks", key), lines_with_peaks, memory, held[key], view.thresholds)
        ranks.append(_rank(view, key, process, plan, gpu, memory_lines, matches[key], told, common))
    return tuple(ranks), held


def _order(tag: str, live: Mapping[str, RankProcess], planned: Mapping[str, RankPlan]) -> tuple[int, ...]:
    if tag in planned:
        plan = planned[tag]
        return (plan.dp, plan.pp, plan.cp, plan.tp)
    return (live[tag].tag if tag in live else tag_of(tag)).order[:4]


def _told_tags(view: NodeView, server: str) -> set[str]:
    """Ranks without a process and without a plan: those that a log or a metrics page names."""
    logged, told = view.logged.get(server), view.digests.get(server)
    tags = set(logged.pools) | logged.tags if logged is not None else set[str]()
    return tags or (set(page_tags(told.series)) if told is not None else tags)


def _rank_tag(tag: str, process: RankProcess | None, plan: RankPlan | None) -> RankTag:
    if process is not None:
        return process.tag
    return RankTag(dp=plan.dp, pp=plan.pp, cp=plan.cp, tp=plan.tp) if plan else tag_of(tag)


def _told(
    view: NodeView, server: ServerVerdict, name: str, tag: RankTag, plan: RankPlan | None, stale: bool
) -> RankDigest:
    """What SGLang's metrics and log tell of the rank's memory, tokens, copies, hand-offs and layers: once a page."""
    page = view.digests.get(server.id)
    info, bootstrap = view.sample.infos.get(server.id), view.sample.bootstraps.get(server.id)
    gave_up = view.log.newest(server.id, "pd_register_gave_up").get(name)
    layers = view.log.newest(server.id, "layer_plan").get(name)
    inputs = (info, plan, bootstrap, gave_up, layers, server.role, stale)
    known = page.by_rank.get(name) if page is not None else None
    if known is not None and known.inputs == inputs:
        return known
    said = reported(page.series if page else None, tag, info)
    lines = (
        *token_lines(plan, said, stale),
        *rate_lines(page.gains if page else None, tag, stale),
        *pd_lines(page.series if page else None, server.role, tag, bootstrap, gave_up is not None, stale),
        layer_line(plan, layers),
    )
    told = RankDigest(inputs, said, lines)
    if page is not None:
        page.by_rank[name] = told
    return told


def _logged_hbm(view: NodeView, key: RankKey, said: Reported) -> LoggedHbm | None:
    """Read only for a rank that does not report its own: a page is cheaper than the log."""
    if said.weights_bytes is not None and not said.memory_is_group:
        return None
    return logged_hbm(view.log, *key)


def _matches(
    view: NodeView, rank: RankKey, process: RankProcess | None, plan: RankPlan | None
) -> tuple[PoolMatch, ...] | None:
    if process is None or process.pid not in view.sample.mappings:
        return None
    return view.unchanged.of(("matches", rank), _matched, plan, view.sample.mappings[process.pid])


def _matched(plan: RankPlan | None, mappings: tuple[MappedPool, ...]) -> tuple[PoolMatch, ...]:
    return match_pools(expected_pools(plan), mappings)


def _pins(
    sample: Sample, servers: Sequence[ServerVerdict], matches: Mapping[RankKey, tuple[PoolMatch, ...] | None]
) -> Pins:
    matched = sum(
        match.mapping.size_bytes for found in matches.values() for match in found or () if match.mapping is not None
    )
    simulated = sample.gpus is not None and sample.gpus.source == "simulated"
    if simulated:
        return Pins("unknown", None, "a demo pins nothing: its GPUs are simulated")
    loading = any(not server.is_ready for server in servers)
    return judge_pins(sample.host, matched, has_driver=sample.gpus is not None, loading=loading)


def _memory(
    view: NodeView,
    key: RankKey,
    process: RankProcess | None,
    plan: RankPlan | None,
    said: Reported,
    common: _Common,
) -> tuple[HbmLines, RankGpu | None]:
    found = common.gpus.of_rank(process, plan.cuda_index if plan else None)
    gpu = gpu_memory(found, "" if found else _why_no_gpu(view.sample))
    logged = _logged_hbm(view, key, said)
    told = view.unchanged.of(("told", key), told_memory, plan, said, logged)
    memory = view.unchanged.of(("hbm", key), hbm_lines, gpu, common.source, told)
    server = view.logged.get(key[0])
    free_bytes = server.device_free_bytes.get(key[1]) if server is not None and process is None else None
    if free_bytes is not None and memory.free.seen is None:
        memory = memory._replace(free=logged_free_line(free_bytes))
    return memory, found


def _rank(
    view: NodeView,
    key: RankKey,
    process: RankProcess | None,
    plan: RankPlan | None,
    found: RankGpu | None,
    memory: PeakedMemory,
    matches: tuple[PoolMatch, ...] | None,
    told: RankDigest,
    common: _Common,
) -> RankVerdict:
    server, tag = key
    gpu_node = found.gpu.numa_node if found else None
    placements = view.sample.placements.get(process.pid, ()) if process else ()
    near = common.near.get(gpu_node, frozenset({gpu_node})) if gpu_node is not None else frozenset[int]()
    of_process = process_memory(process)
    lines: tuple[Line, ...] = (
        *memory.lines,
        *_pool_lines(view, server, tag, plan, matches, process),
        *view.unchanged.of(("process", key), process_lines, of_process, common.pins, plan),
        view.unchanged.of(("local", key), local_line, placements, gpu_node, near, view.thresholds),
        *told.lines,
        *memory.peak_lines,
    )
    return RankVerdict(
        server=server,
        rank=tag,
        pid=process.pid if process else None,
        gpu=found.gpu.index if found else None,
        cuda_index=plan.cuda_index if plan else None,
        numa=gpu_node,
        state=process.state if process else None,
        lines=lines,
        peaks=memory.peaks,
    )


def _pool_lines(
    view: NodeView,
    server: str,
    tag: str,
    plan: RankPlan | None,
    matches: tuple[PoolMatch, ...] | None,
    process: RankProcess | None,
) -> tuple[Line, ...]:
    """What is mapped; where maps cannot be read, what was logged."""
    told = view.logged.get(server)
    pools = told.pools.get(tag, ()) if told is not None else ()
    if matches is None and pools:
        return logged_pool_lines(plan, pools, as_allocated=bool(view.sample.mappings))
    if matches is None:
        return missing_pool_lines(plan, _why_no_maps(view.sample, process))
    return view.unchanged.of(("pools", server, tag), pool_lines, plan, matches, view.thresholds)


def _why_no_gpu(sample: Sample) -> str:
    state = next((state for state in sample.sources if state.part == "gpus"), None)
    if sample.gpus is not None:
        return "no GPU of this node could be told to be this rank's"
    return state.detail if state is not None and state.detail else "NVML has not answered yet"


def _why_no_maps(sample: Sample, process: RankProcess | None) -> str:
    if process is None:
        return "no process of this rank"
    state = next((state for state in sample.sources if state.part == "mappings"), None)
    if state is not None and state.detail:
        return state.detail
    return f"/proc/{process.pid}/maps was not readable (same user, CAP_SYS_PTRACE or root)"


def _is_stale(sample: Sample, source: str, server: str) -> bool:
    return any(
        state.name == source and state.server == server and state.state in ("stale", "error")
        for state in sample.sources
    )
