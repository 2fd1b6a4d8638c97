"""Which ranks a node has: those of a process, of a plan, else those that a log or a metrics page names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ranktop.plan.plan import RankPlan
from ranktop.reconcile.digest import PageDigest
from ranktop.reconcile.gpus import GpuFinder, RankGpu
from ranktop.reconcile.judge import NodeView
from ranktop.reconcile.lives import RankKey
from ranktop.reconcile.logged import LoggedServer, tag_of
from ranktop.reconcile.logged_hbm import LoggedHbm, logged_hbm
from ranktop.reconcile.pageranks import page_tags
from ranktop.reconcile.phases import ServerPhases
from ranktop.reconcile.verdict import ServerVerdict
from ranktop.sample import Bootstrap, Event, Processes, RankProcess, RankTag, Sample, ServerInfo


class KnownServer(NamedTuple):
    """What is known of a server and not of one of its ranks alone."""

    server: ServerVerdict
    page: PageDigest | None
    info: ServerInfo | None
    bootstrap: Bootstrap | None
    logged: LoggedServer | None
    logged_hbm: Mapping[str, LoggedHbm]
    gave_up: Mapping[str | None, Event]
    """By rank: its last failed try to register with the bootstrap server."""
    layer_plans: Mapping[str | None, Event]
    phases: ServerPhases
    is_stale: bool
    """Its metrics page is late."""


class FoundRank(NamedTuple):
    """A rank, its process, its plan and its GPU, as far as there are any."""

    of: KnownServer
    key: RankKey
    process: RankProcess | None
    plan: RankPlan | None
    gpu: RankGpu | None

    @property
    def tag(self) -> RankTag:
        if self.process is not None:
            return self.process.tag
        plan = self.plan
        return RankTag(dp=plan.dp, pp=plan.pp, cp=plan.cp, tp=plan.tp) if plan else tag_of(self.key[1])


def found_ranks(
    view: NodeView, servers: Iterable[ServerVerdict], phases: Mapping[str, ServerPhases]
) -> Iterator[FoundRank]:
    """Server by server, in rank order."""
    gpus = GpuFinder(view.sample.gpus)
    processes = view.sample.processes or Processes()
    for server in servers:
        of = _known(view, server, phases)
        live = {str(rank.tag): rank for rank in processes.ranks if rank.server == server.id}
        planned = {rank.rank: rank for rank in server.plan.ranks} if server.plan else {}
        tags = {**planned, **live} or dict.fromkeys(_told_tags(of))
        for tag in sorted(tags, key=lambda tag: _order(tag, live, planned)):
            process, plan = live.get(tag), planned.get(tag)
            gpu = gpus.of_rank(process, plan.cuda_index if plan else None)
            yield FoundRank(of, (server.id, tag), process, plan, gpu)


def _known(view: NodeView, server: ServerVerdict, phases: Mapping[str, ServerPhases]) -> KnownServer:
    sample, log = view.sample, view.log
    logged: list[Sequence[Event]] = [
        tuple(log.all_of(server.id, kind)) for kind in ("weights_end", "l1_pool", "graph_end")
    ]
    return KnownServer(
        server,
        view.digests.get(server.id),
        sample.infos.get(server.id),
        sample.bootstraps.get(server.id),
        view.logged.get(server.id),
        view.unchanged.of(("logged hbm", server.id), logged_hbm, *logged),
        log.newest(server.id, "pd_register_gave_up"),
        log.newest(server.id, "layer_plan"),
        phases.get(server.id) or ServerPhases(None),
        _is_stale(sample, "metrics", server.id),
    )


def _told_tags(of: KnownServer) -> set[str]:
    tags = set(of.logged.pools) | of.logged.tags if of.logged is not None else set[str]()
    return tags or (set(page_tags(of.page.series)) if of.page is not None else tags)


def _order(tag: str, live: Mapping[str, RankProcess], planned: Mapping[str, RankPlan]) -> tuple[int, ...]:
    if tag in planned:
        plan = planned[tag]
        return (plan.dp, plan.pp, plan.cp, plan.tp)
    return (live[tag].tag if tag in live else tag_of(tag)).order[:4]


def _is_stale(sample: Sample, source: str, server: str) -> bool:
    return any(
        state.name == source and state.server == server and state.state in ("stale", "error")
        for state in sample.sources
    )
