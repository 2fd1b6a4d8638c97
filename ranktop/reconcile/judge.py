"""One sample's servers and node. Its ranks: `judge_ranks.py`. Pure: no memory of earlier samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from ranktop.plan.plan import Plan
from ranktop.reconcile.digest import PageDigest
from ranktop.reconcile.eventlog import EventLog
from ranktop.reconcile.lines.growth import with_pool_growth
from ranktop.reconcile.lines.node import node_lines, pool_bytes_by_node, pools_line, request_lines
from ranktop.reconcile.logged import LoggedServer
from ranktop.reconcile.plans import ServerPlan
from ranktop.reconcile.prefetches import prefetches
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.unchanged import Unchanged
from ranktop.reconcile.verdict import (
    Acceptance,
    Handoff,
    Load,
    NodeVerdict,
    RankVerdict,
    ServerVerdict,
    Service,
    TierShares,
    Traffic,
    TransferRates,
)
from ranktop.sample import Processes, Sample, ServerProcess


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


def judge_node(view: NodeView, servers: Sequence[ServerVerdict], ranks: Sequence[RankVerdict]) -> NodeVerdict:
    """The node's lines."""
    plans = [server.plan for server in servers if server.plan is not None and server.pid is not None]
    pools = tuple([rank.pools for rank in ranks])
    placements = tuple([view.sample.placements.get(rank.pid or 0, ()) for rank in ranks])
    lines = (
        *node_lines(
            view.sample,
            plans,
            view.unchanged.of("node pools", pools_line, plans, pools),
            view.unchanged.of("pools by node", pool_bytes_by_node, pools, placements),
            view.thresholds,
        ),
        *request_lines(servers),
    )
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
    return bool(server in sample.metrics and sample.metrics[server].keys)
