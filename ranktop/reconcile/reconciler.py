"""Sample by sample to verdicts: the only part of the reconciliation that remembers.

Deterministic in the stream of samples: a replay of the same samples gives the same verdicts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ranktop.finding import Finding
from ranktop.plan import LaunchRequest
from ranktop.reconcile.digest import PageDigest, digest
from ranktop.reconcile.grouping import group
from ranktop.reconcile.headline import headline
from ranktop.reconcile.history import History, LineKey
from ranktop.reconcile.judge import (
    NodeView,
    RankId,
    judge_node,
    judge_ranks,
    judge_servers,
    node_tiers,
    node_transfers,
    server_ids,
)
from ranktop.reconcile.ledger import Ledger, ledger
from ranktop.reconcile.logged import LoggedServer, fold
from ranktop.reconcile.plans import ServerPlan, plan_server
from ranktop.reconcile.rules import HISTORY_LINES, RULES, Context, GoneRank
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.tracking import Key, Open, track
from ranktop.reconcile.verdict import NodeVerdict, RankVerdict, ServerVerdict, Verdict
from ranktop.sample import Event, RankProcess, Sample, ServerInfo, ServerProcess

_PlanKey = tuple[ServerProcess | None, ServerInfo | None, str | None, LoggedServer | None]

LEDGER_SECONDS = 900.0
_MAX_EVENTS = 4000


class Reconciler:
    """Holds each sample against the plan.

    `given` is a launch, `sglang` a version, that the user names for servers that tell none. `since_start`: the samples
    are all that there will be, so totals of a single page are judged as they stand.
    """

    def __init__(
        self,
        thresholds: Thresholds | None = None,
        given: LaunchRequest | None = None,
        *,
        sglang: str | None = None,
        since_start: bool = False,
    ) -> None:
        self._thresholds = thresholds or Thresholds()
        self._given = given
        self._sglang = sglang
        self._since_start = since_start
        self._logged: dict[str, LoggedServer] = {}
        self._plans: dict[str, tuple[_PlanKey, ServerPlan]] = {}
        self._digests: dict[str, PageDigest] = {}
        self._present: dict[RankId, RankProcess] = {}
        self._gone: dict[RankId, GoneRank] = {}
        self._open: dict[Key, Open] = {}
        self._previous: Sample | None = None
        self._history = History()
        self._ledgers: dict[str, deque[Ledger]] = {}
        self._events: deque[Event] = deque(maxlen=_MAX_EVENTS)
        self._ready_since: dict[str, float] = {}
        self._seen_up: set[str] = set()
        self._within_plan_since: float | None = None

    def update(self, sample: Sample) -> Verdict:
        """The verdict on this sample, given all before it."""
        self._remember(sample)
        view = NodeView(
            sample=sample,
            plans={server: self._plan(server, sample) for server in server_ids(sample, self._logged)},
            digests=self._digests,
            logged=self._logged,
            thresholds=self._thresholds,
        )
        servers = judge_servers(view)
        ranks = judge_ranks(view, servers)
        node = judge_node(view, servers, ranks)
        self._note(sample, servers, ranks, node)
        context = Context(
            sample=sample,
            servers=servers,
            ranks=ranks,
            node=node,
            thresholds=self._thresholds,
            gone=tuple(self._gone.values()),
            previous=self._previous,
            history=self._history,
            ledgers={server: tuple(kept) for server, kept in self._ledgers.items()},
            events=tuple(self._events),
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
        )

    def _remember(self, sample: Sample) -> None:
        self._digests = {
            server: digest(self._digests.get(server), page, _version(sample, server), _ranks(sample, server))
            for server, page in sample.metrics.items()
        }
        self._seen_up.update(sample.metrics)
        self._seen_up.update(sample.infos)
        for server in {event.server for event in sample.events if event.server is not None}:
            own = (event for event in sample.events if event.server == server)
            self._logged[server] = fold(self._logged.get(server, LoggedServer()), own)
        if sample.processes is not None:
            self._follow_ranks(sample)

    def _note(
        self, sample: Sample, servers: Sequence[ServerVerdict], ranks: Sequence[RankVerdict], node: NodeVerdict
    ) -> None:
        """What rules may look back on."""
        now = sample.at_monotonic_seconds
        self._events.extend(sample.events)
        self._history.record(now, past_values(ranks, node))
        self._ready_since = {server.id: self._ready_since.get(server.id, now) for server in servers if server.is_ready}
        for server, told in self._digests.items():
            kept = self._ledgers.setdefault(server, deque())
            if not kept or kept[-1].at_unix_seconds != told.page.at_unix_seconds:
                kept.append(ledger(told.series, now, told.version, told.ranks))
            while now - kept[0].at_monotonic_seconds > LEDGER_SECONDS:
                kept.popleft()
        for server in [server for server in self._ledgers if server not in self._digests]:
            del self._ledgers[server]

    def _follow_ranks(self, sample: Sample) -> None:
        assert sample.processes is not None
        now_present = {(rank.server, str(rank.tag)): rank for rank in sample.processes.ranks}
        mains = {server.id for server in sample.processes.servers}
        for identity, rank in self._present.items():
            if identity not in now_present:
                self._gone[identity] = GoneRank(rank, sample.at_unix_seconds, rank.server not in mains)
        for identity in [identity for identity in self._gone if identity in now_present]:
            del self._gone[identity]
        for identity, gone in list(self._gone.items()):
            # A main process that outlives its ranks by a moment still ended with them.
            if not gone.server_gone and gone.process.server not in mains:
                self._gone[identity] = GoneRank(gone.process, gone.gone_unix_seconds, True)
        self._present = now_present

    def _plan(self, server: str, sample: Sample) -> ServerPlan:
        processes = sample.processes.servers if sample.processes else ()
        process = next((known for known in processes if known.id == server), None)
        info = sample.infos.get(server)
        gpu_name = sample.gpus.gpus[0].name if sample.gpus and sample.gpus.gpus else None
        logged = self._logged.get(server)
        key = (process, info, gpu_name, logged)
        known = self._plans.get(server)
        if known is None or known[0] != key:
            plan = plan_server(process, info, self._given, sample.gpus, logged, self._sglang)
            known = self._plans[server] = (key, plan)
        return known[1]

    def _findings(self, context: Context) -> tuple[Finding, ...]:
        fired = [finding for rule in RULES for finding in rule(context)]
        self._open = track(self._open, context.sample.at_unix_seconds, fired, self._thresholds.close_after_updates)
        order: dict[tuple[str | None, str | None], int] = {
            identity: place for place, identity in enumerate(_rank_order(context))
        }
        return group((known.finding for known in self._open.values()), order)

    def _note_within_plan(self, sample: Sample, findings: tuple[Finding, ...], ready: bool) -> None:
        quiet = ready and all(finding.severity == "info" for finding in findings)
        if not quiet:
            self._within_plan_since = None
        elif self._within_plan_since is None:
            self._within_plan_since = sample.at_unix_seconds


def past_values(ranks: Sequence[RankVerdict], node: NodeVerdict) -> dict[LineKey, float]:
    """The values of this update that rules may look back on; a line that was not seen is left out."""
    values = {
        (rank.server, rank.rank, line.line): float(line.seen)
        for rank in ranks
        for line in rank.lines
        if line.line in HISTORY_LINES and line.seen is not None and not line.stale
    }
    for line in node.lines:
        if line.line in HISTORY_LINES and line.seen is not None:
            values["", "", line.line] = float(line.seen)
    return values


def _version(sample: Sample, server: str) -> str | None:
    info = sample.infos.get(server)
    return info.version if info else None


def _ranks(sample: Sample, server: str) -> int:
    processes = sample.processes.ranks if sample.processes else ()
    return max(1, sum(1 for rank in processes if rank.server == server))


def _rank_order(context: Context) -> Iterator[RankId]:
    for server in context.servers:
        if server.plan is not None:
            yield from ((server.id, planned.rank) for planned in server.plan.ranks)
        yield from ((rank.server, rank.rank) for rank in context.ranks_of(server.id))
