"""Sample by sample to verdicts: the only part of the reconciliation that remembers.

Deterministic in the stream of samples: a replay of the same samples gives the same verdicts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from ranktop.finding import Finding
from ranktop.plan import LaunchRequest
from ranktop.reconcile.allocation import pending_pools
from ranktop.reconcile.counters import counter_values
from ranktop.reconcile.digest import PageDigest, digest
from ranktop.reconcile.folding import fold_effects
from ranktop.reconcile.grouping import group
from ranktop.reconcile.headline import headline
from ranktop.reconcile.history import History, LineKey
from ranktop.reconcile.incidents import Incidents
from ranktop.reconcile.judge import NodeView, judge_node, judge_servers, server_ids
from ranktop.reconcile.judge_ranks import judge_ranks
from ranktop.reconcile.launches import Launch
from ranktop.reconcile.lines.peaks import RankHbm
from ranktop.reconcile.lives import Lives, RankKey, follow, living_mains
from ranktop.reconcile.logged import LoggedServer, fold
from ranktop.reconcile.nodetotals import node_tiers, node_transfers
from ranktop.reconcile.phases import ServerPhases, follow_phases, phase_list
from ranktop.reconcile.plans import ServerPlan, plan_server
from ranktop.reconcile.routers import RouterDigest, router_digest
from ranktop.reconcile.rules import NODE_HISTORY, RANK_HISTORY, RULES, SELDOM_RANK_HISTORY, SERVER_RUNNING, Context
from ranktop.reconcile.serverpast import ServerPast
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.tracking import Key, Open, track
from ranktop.reconcile.unchanged import Unchanged
from ranktop.reconcile.verdict import NodeVerdict, RankVerdict, ServerVerdict, Verdict
from ranktop.sample import Event, ModelConfig, Sample, ServerInfo

_PlanKey = tuple[
    tuple[str, ...] | None, int | None, ServerInfo | None, str | None, LoggedServer | None, ModelConfig | None
]

_MAX_EVENTS = 4000


class Reconciler:
    """Holds each sample against the plan.

    `given` is a launch, `sglang` a version, that the user names for servers that tell none. `since_start`: the samples
    are all that there will be, so totals of a single page are judged as they stand. `launches`: those that earlier
    runs have seen, oldest first.
    """

    def __init__(
        self,
        thresholds: Thresholds | None = None,
        given: LaunchRequest | None = None,
        *,
        sglang: str | None = None,
        since_start: bool = False,
        launches: Iterable[Launch] = (),
    ) -> None:
        self._thresholds = thresholds or Thresholds()
        self._given = given
        self._sglang = sglang
        self._since_start = since_start
        self._logged: dict[str, LoggedServer] = {}
        self._shmem_before_bytes: int | None = None
        self._plans: dict[str, tuple[_PlanKey, ServerPlan]] = {}
        self._digests: dict[str, PageDigest] = {}
        self._routers: dict[str, RouterDigest] = {}
        self._lives = Lives()
        self._phases: dict[str, ServerPhases] = {}
        self._hbm: dict[RankKey, RankHbm] = {}
        self._open: dict[Key, Open] = {}
        self._previous: Sample | None = None
        self._history = History()
        self._past = ServerPast(launches)
        self._events: deque[Event] = deque(maxlen=_MAX_EVENTS)
        self._incidents = Incidents()
        self._unchanged = Unchanged()
        self._ready_since: dict[str, float] = {}
        self._seen_up: set[str] = set()
        self._starts: dict[str, int] = {}
        """By server: start ticks of the main process last seen; 0 for one that is no process here."""
        self._within_plan_since: float | None = None

    def update(self, sample: Sample) -> Verdict:
        """The verdict on this sample, given all before it."""
        self._remember(sample)
        self._unchanged.next_update()
        view = NodeView(
            sample=sample,
            plans={server: self._plan(server, sample) for server in server_ids(sample, self._logged)},
            digests=self._digests,
            logged=self._logged,
            shmem_before_bytes=self._shmem_before_bytes,
            log=self._past.log,
            thresholds=self._thresholds,
            unchanged=self._unchanged,
        )
        servers = judge_servers(view)
        self._phases = follow_phases(self._phases, sample, servers)
        ranks, self._hbm = judge_ranks(view, servers, self._phases, self._hbm)
        node = judge_node(view, servers, ranks)
        self._note(sample, servers, ranks, node)
        context = Context(
            sample=sample,
            servers=servers,
            ranks=ranks,
            node=node,
            thresholds=self._thresholds,
            gone=tuple(self._lives.gone.values()),
            returned=tuple(self._lives.returned.values()),
            stuck_since=self._lives.stuck_since,
            orphan_since=self._lives.orphan_since,
            pending=pending_pools(sample, ranks, self._unchanged),
            hbm=self._hbm,
            previous=self._previous,
            history=self._history,
            ledgers=self._past.ledgers(),
            log=self._past.log,
            activities=self._past.activities,
            requests=self._past.requests,
            launches=self._past.launches,
            events=tuple(self._events),
            incidents=self._incidents,
            ready_since=self._ready_since,
            seen_up=frozenset(self._seen_up),
            logged=self._logged,
            since_start=self._since_start,
        )
        findings = self._findings(context)
        self._previous = sample
        ready = bool(servers) and all(server.plan is not None and server.is_ready for server in servers)
        self._note_within_plan(sample, findings, ready)
        sentence, severity = headline(sample, servers, findings, self._within_plan_since)
        return Verdict(
            sample=sample,
            servers=servers,
            node=node,
            ranks=ranks,
            tiers=node_tiers(servers),
            transfers=node_transfers(servers),
            findings=findings,
            headline=sentence,
            headline_severity=severity,
            within_plan_since=self._within_plan_since,
            phases=self._unchanged.of("phases", phase_list, self._phases),
            routers={url: told.latency for url, told in self._routers.items()},
        )

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Every launch that is known, oldest first of each server: for the state file."""
        return tuple(launch for known in self._past.launches.values() for launch in known)

    def _remember(self, sample: Sample) -> None:
        self._forget_ended(sample)
        self._digests = {
            server: digest(self._digests.get(server), page, sample.infos.get(server), _processes(sample, server))
            for server, page in sample.metrics.items()
        }
        self._routers = {url: router_digest(self._routers.get(url), page) for url, page in sample.routers.items()}
        self._seen_up.update(sample.metrics)
        self._seen_up.update(sample.infos)
        self._past.log.record(sample.events)
        for server in dict.fromkeys(event.server for event in sample.events if event.server is not None):
            own = (event for event in sample.events if event.server == server)
            self._logged[server] = fold(self._logged.get(server, LoggedServer()), own)
        if sample.host is not None and not server_ids(sample, self._logged):
            self._shmem_before_bytes = sample.host.shmem_bytes
        self._lives = follow(self._lives, sample)

    def _forget_ended(self, sample: Sample) -> None:
        """What an earlier process of a server has logged and answered is not the present one's."""
        mains = living_mains(sample.processes) if sample.processes is not None else self._starts
        for server, start in self._starts.items():
            if mains.get(server) != start:
                self._seen_up.discard(server)
            if server in mains and mains[server] != start:
                self._logged.pop(server, None)
        self._starts = {**self._starts, **mains}

    def _note(
        self, sample: Sample, servers: Sequence[ServerVerdict], ranks: Sequence[RankVerdict], node: NodeVerdict
    ) -> None:
        """What rules may look back on."""
        now = sample.at_monotonic_seconds
        self._events.extend(sample.events)
        self._incidents.record(sample.events)
        self._history.record(
            now,
            _rank_values(ranks, RANK_HISTORY) | _server_values(servers) | _node_values(node) | counter_values(sample),
            lambda: _rank_values(ranks, SELDOM_RANK_HISTORY),
        )
        self._ready_since = {server.id: self._ready_since.get(server.id, now) for server in servers if server.is_ready}
        self._past.note_pages(now, self._digests)
        self._past.note_servers(sample, servers, ranks)

    def _plan(self, server: str, sample: Sample) -> ServerPlan:
        processes = sample.processes.servers if sample.processes else ()
        process = next((known for known in processes if known.id == server), None)
        info = sample.infos.get(server)
        gpu_name = sample.gpus.gpus[0].name if sample.gpus and sample.gpus.gpus else None
        logged = self._logged.get(server)
        config = sample.model_configs.get(server)
        # Not the whole process, which runs and sleeps in turns.
        argv, pid = (process.argv, process.pid) if process is not None else (None, None)
        key = (argv, pid, info, gpu_name, logged, config)
        known = self._plans.get(server)
        if known is None or known[0] != key:
            plan = plan_server(process, info, self._given, sample.gpus, logged, self._sglang, config)
            known = self._plans[server] = (key, plan)
        return known[1]

    def _findings(self, context: Context) -> tuple[Finding, ...]:
        fired = [finding for rule in RULES for finding in rule(context)]
        self._open = track(self._open, context.sample.at_unix_seconds, fired, self._thresholds.close_after_updates)
        order: dict[tuple[str | None, str | None], int] = {
            identity: place for place, identity in enumerate(_rank_order(context))
        }
        return fold_effects(group((known.finding for known in self._open.values()), order))

    def _note_within_plan(self, sample: Sample, findings: tuple[Finding, ...], ready: bool) -> None:
        quiet = ready and all(finding.severity == "info" for finding in findings)
        if not quiet:
            self._within_plan_since = None
        elif self._within_plan_since is None:
            self._within_plan_since = sample.at_unix_seconds


def _rank_values(ranks: Sequence[RankVerdict], names: Sequence[str]) -> dict[LineKey, float]:
    """A line that was not seen is left out."""
    return {
        (rank.server, rank.rank, name): float(line.seen)
        for rank in ranks
        for name in names
        if (line := rank.line(name)).seen is not None and not line.stale
    }


def _server_values(servers: Sequence[ServerVerdict]) -> dict[LineKey, float]:
    said = ((server.id, server.service.running) for server in servers)
    return {(server, "", SERVER_RUNNING): float(running) for server, running in said if running is not None}


def _node_values(node: NodeVerdict) -> dict[LineKey, float]:
    lines = [node.line(name) for name in NODE_HISTORY]
    return {("", "", line.line): float(line.seen) for line in lines if line.seen is not None}


def _processes(sample: Sample, server: str) -> int:
    ranks = sample.processes.ranks if sample.processes else ()
    return sum(1 for rank in ranks if rank.server == server)


def _rank_order(context: Context) -> Iterator[RankKey]:
    for server in context.servers:
        if server.plan is not None:
            yield from ((server.id, planned.rank) for planned in server.plan.ranks)
        yield from ((rank.server, rank.rank) for rank in context.ranks_of(server.id))
