"""One sample's servers, ranks and node, joined by process, server and GPU. Pure: no memory of earlier samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from ranktop.plan.plan import Plan, RankPlan
from ranktop.reconcile.digest import PageDigest, RankDigest
from ranktop.reconcile.eventlog import EventLog
from ranktop.reconcile.gpus import GpuFinder
from ranktop.reconcile.lines.growth import with_pool_growth
from ranktop.reconcile.lines.hbm import gpu_memory, hbm_lines
from ranktop.reconcile.lines.host import expected_pools, missing_pool_lines, pool_lines, process_lines
from ranktop.reconcile.lines.layers import layer_line
from ranktop.reconcile.lines.logged import logged_free_line, logged_pool_lines
from ranktop.reconcile.lines.node import node_lines, request_lines
from ranktop.reconcile.lines.pd import pd_lines
from ranktop.reconcile.lines.placement import local_line, near_nodes
from ranktop.reconcile.lines.rates import rate_lines
from ranktop.reconcile.lines.tokens import token_lines
from ranktop.reconcile.logged import LoggedServer, tag_of
from ranktop.reconcile.logged_hbm import LoggedHbm, logged_hbm
from ranktop.reconcile.pageranks import page_tags
from ranktop.reconcile.pins import Pins, judge_pins
from ranktop.reconcile.plans import ServerPlan
from ranktop.reconcile.pools import PoolMatch, match_pools
from ranktop.reconcile.prefetches import prefetches
from ranktop.reconcile.reported import Reported, reported
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.unchanged import Unchanged
from ranktop.reconcile.verdict import (
    Acceptance,
    Handoff,
    Line,
    Load,
    NodeVerdict,
    RankVerdict,
    ServerVerdict,
    Service,
    Source,
    TierShares,
    Traffic,
    TransferRates,
)
from ranktop.sample import Mapping as MappedPool
from ranktop.sample import Processes, RankProcess, RankTag, Sample, ServerProcess

RankId = tuple[str, str]
"""(server id, rank tag)."""


class NodeView(Struct, frozen=True):
    """What is known now: the sample, every server's plan, and what its last two pages say."""

    sample: Sample
    plans: Mapping[str, ServerPlan]
    digests: Mapping[str, PageDigest]
    thresholds: Thresholds
    logged: Mapping[str, LoggedServer] = {}
    shmem_before_bytes: int | None = None
    """Shmem of the host from before any server ran, None where that was not seen."""
    log: EventLog = EventLog()
    unchanged: Unchanged = msgspec.field(default_factory=Unchanged)
    """What was made of the same objects at the update before."""


def server_ids(sample: Sample, logged: Mapping[str, LoggedServer]) -> tuple[str, ...]:
    """Every server that any source knows, those with processes first."""
    processes = sample.processes or Processes()
    ids = [server.id for server in processes.servers]
    ids += [rank.server for rank in processes.ranks]
    ids += [*sample.infos, *sample.metrics, *sample.loads, *sample.requests]
    # A log outlives its server: on a live node it names none that is gone.
    ids += logged if sample.processes is None else ()
    return tuple(dict.fromkeys(ids))


def judge_servers(view: NodeView) -> tuple[ServerVerdict, ...]:
    """Plan, tiers, transfers and service of every server."""
    sample = view.sample
    processes = sample.processes or Processes()
    by_id = {server.id: server for server in processes.servers}
    return tuple(_server(view, server, by_id.get(server), processes) for server in server_ids(sample, view.logged))


def judge_ranks(view: NodeView, servers: Sequence[ServerVerdict]) -> tuple[RankVerdict, ...]:
    """Every rank that a process or a plan knows, in rank order within its server."""
    processes = view.sample.processes or Processes()
    found: list[tuple[ServerVerdict, str, RankProcess | None, RankPlan | None]] = []
    for server in servers:
        live = {str(rank.tag): rank for rank in processes.ranks if rank.server == server.id}
        planned = {rank.rank: rank for rank in server.plan.ranks} if server.plan else {}
        known = {**planned, **live} or dict.fromkeys(_told_tags(view, server.id))
        tags = sorted(known, key=lambda tag: _order(tag, live, planned))
        found += [(server, tag, live.get(tag), planned.get(tag)) for tag in tags]
    matches = {
        (server.id, tag): _matches(view, (server.id, tag), process, plan) for server, tag, process, plan in found
    }
    pins = _pins(view.sample, servers, matches)
    gpus = GpuFinder(view.sample.gpus)
    stale = {server.id: _is_stale(view.sample, "metrics", server.id) for server in servers}
    return tuple(
        _rank(
            view,
            server,
            tag,
            process,
            plan,
            matches[server.id, tag],
            _told(view, server, tag, _rank_tag(tag, process, plan), plan, stale[server.id]),
            pins,
            gpus,
        )
        for server, tag, process, plan in found
    )


def judge_node(view: NodeView, servers: Sequence[ServerVerdict], ranks: Sequence[RankVerdict]) -> NodeVerdict:
    """The node's lines."""
    plans = [server.plan for server in servers if server.plan is not None and server.pid is not None]
    lines = (*node_lines(view.sample, plans, ranks, view.thresholds), *request_lines(servers))
    return NodeVerdict(with_pool_growth(lines, ranks, view.shmem_before_bytes, view.sample.host))


def _server(view: NodeView, server: str, process: ServerProcess | None, processes: Processes) -> ServerVerdict:
    sample = view.sample
    info = sample.infos.get(server)
    planned = view.plans[server]
    plan = planned.plan
    ranks = sum(1 for rank in processes.ranks if rank.server == server)
    logged = view.logged.get(server)
    told = view.digests.get(server)
    version = info.version if info else None
    started = None
    if process is not None and processes.boot_unix_seconds is not None and process.start_ticks:
        started = processes.boot_unix_seconds + process.start_ticks / processes.ticks_per_second
    model = (info.served_model_name or info.model_path) if info else None
    return ServerVerdict(
        id=server,
        pid=process.pid if process else None,
        url=process.url if process else None,
        version=version or (plan.sglang.version if plan and process else None),
        model=model or (plan.model.name if plan else None),
        role=plan.launch.role if plan else None,
        ranks=ranks or _ranks_told(plan, logged, told),
        plan=plan,
        plan_origin=planned.origin,
        plan_error=planned.problem,
        calibration=planned.calibration,
        started_unix_seconds=started,
        is_ready=_is_ready(sample, server) or (process is None and logged is not None and logged.is_ready),
        tiers=told.tiers if told else TierShares(detail="no metrics page"),
        transfers=told.transfers if told else TransferRates(),
        service=told.service if told else Service(),
        load=told.load if told else Load(),
        acceptance=told.acceptance if told else Acceptance(),
        traffic=told.traffic if told else Traffic(),
        handoff=told.handoff if told else Handoff(),
        prefetches=prefetches(view.log, server, plan.launch.page_size if plan else None),
    )


def _ranks_told(plan: Plan | None, logged: LoggedServer | None, told: PageDigest | None) -> int:
    """Ranks of a server without processes."""
    if plan is not None:
        return len(plan.ranks)
    if logged is not None and logged.pools:
        return len(logged.pools)
    return len(told.series.ranks()) if told is not None else 0


def _is_ready(sample: Sample, server: str) -> bool:
    """SGLang opens its port once the schedulers are up; `/server_info` says `ready` in words."""
    info = sample.infos.get(server)
    if info is not None and info.is_ready is not None:
        return info.is_ready
    return bool(server in sample.metrics and sample.metrics[server].points)


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


def _logged_hbm(view: NodeView, server: str, tag: str, said: Reported) -> LoggedHbm | None:
    """Read only for a rank that does not report its own: a page is cheaper than the log."""
    if said.weights_bytes is not None and not said.memory_is_group:
        return None
    return logged_hbm(view.log, server, tag)


def _matches(
    view: NodeView, rank: RankId, process: RankProcess | None, plan: RankPlan | None
) -> tuple[PoolMatch, ...] | None:
    if process is None or process.pid not in view.sample.mappings:
        return None
    return view.unchanged.of(("matches", rank), _matched, plan, view.sample.mappings[process.pid])


def _matched(plan: RankPlan | None, mappings: tuple[MappedPool, ...]) -> tuple[PoolMatch, ...]:
    return match_pools(expected_pools(plan), mappings)


def _pins(
    sample: Sample, servers: Sequence[ServerVerdict], matches: Mapping[RankId, tuple[PoolMatch, ...] | None]
) -> Pins:
    matched = sum(
        match.mapping.size_bytes for found in matches.values() for match in found or () if match.mapping is not None
    )
    simulated = sample.gpus is not None and sample.gpus.source == "simulated"
    if simulated:
        return Pins("unknown", None, "a demo pins nothing: its GPUs are simulated")
    loading = any(not server.is_ready for server in servers)
    return judge_pins(sample.host, matched, has_driver=sample.gpus is not None, loading=loading)


def _rank(
    view: NodeView,
    server: ServerVerdict,
    tag: str,
    process: RankProcess | None,
    plan: RankPlan | None,
    matches: tuple[PoolMatch, ...] | None,
    told: RankDigest,
    pins: Pins,
    gpus: GpuFinder,
) -> RankVerdict:
    sample = view.sample
    cuda_index = plan.cuda_index if plan else None
    found = gpus.of_rank(process, cuda_index)
    source: Source = "simulated" if sample.gpus is not None and sample.gpus.source == "simulated" else "measured"
    gpu_node = found.gpu.numa_node if found else None
    placements = sample.placements.get(process.pid, ()) if process else ()
    logged = view.logged.get(server.id)
    free_bytes = logged.device_free_bytes.get(tag) if logged is not None and process is None else None
    logged_memory = _logged_hbm(view, server.id, tag, told.said)
    gpu = gpu_memory(found, "" if found else _why_no_gpu(sample))
    memory = view.unchanged.of(("hbm", server.id, tag), hbm_lines, gpu, source, plan, told.said, logged_memory)
    if free_bytes is not None:
        memory = tuple(logged_free_line(line, free_bytes) for line in memory)
    lines: tuple[Line, ...] = (
        *memory,
        *_pool_lines(view, server.id, tag, plan, matches, process),
        *process_lines(process, pins, plan),
        view.unchanged.of(
            ("local", server.id, tag), local_line, placements, gpu_node, _near(sample, gpu_node), view.thresholds
        ),
        *told.lines,
    )
    return RankVerdict(
        server=server.id,
        rank=tag,
        pid=process.pid if process else None,
        gpu=found.gpu.index if found else None,
        cuda_index=cuda_index,
        numa=gpu_node,
        state=process.state if process else None,
        lines=lines,
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
        return logged_pool_lines(plan, pools)
    if matches is None:
        return missing_pool_lines(plan, _why_no_maps(view.sample, process))
    return view.unchanged.of(("pools", server, tag), pool_lines, plan, matches, view.thresholds)


def _near(sample: Sample, gpu_node: int | None) -> frozenset[int]:
    if gpu_node is None:
        return frozenset()
    return near_nodes(gpu_node, {node.node: dict(node.distances) for node in sample.numa or ()})


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
