"""What a rule is: a pure function from what is known now to the findings that hold now."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ranktop.finding import Finding
from ranktop.plan.plan import Plan, RankPlan
from ranktop.reconcile.activity import Activity
from ranktop.reconcile.allocation import Pending
from ranktop.reconcile.eventlog import EventLog
from ranktop.reconcile.history import History
from ranktop.reconcile.incidents import Incidents
from ranktop.reconcile.launches import Launch
from ranktop.reconcile.ledger import Ledger, Window, over
from ranktop.reconcile.lines.peaks import RankHbm
from ranktop.reconcile.lives import GoneRank, RankKey, ReturnedRank
from ranktop.reconcile.logged import LoggedServer
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.verdict import NodeVerdict, RankVerdict, ServerVerdict
from ranktop.sample import Event, RequestRecord, Sample

NODE_HISTORY = ("host.available", "host.pressure")
RANK_HISTORY = ("host.anon",)
"""Lines of the node and of ranks that some rule looks back on. A rule that needs another adds it here."""
SELDOM_RANK_HISTORY = ("hbm.rest", "l2.used", "spec.accept_length")
"""The same for windows of many minutes alone: kept every ten seconds."""
SERVER_RUNNING = "running"
"""Running requests of a server, in the history beside these."""


class Context(Struct, frozen=True, dict=True):
    """Everything a rule may look at."""

    sample: Sample
    servers: tuple[ServerVerdict, ...]
    ranks: tuple[RankVerdict, ...]
    node: NodeVerdict
    thresholds: Thresholds
    gone: tuple[GoneRank, ...] = ()
    previous: Sample | None = None
    """The sample before this one, for counters of the host and of cgroups."""
    history: History = History()
    """Past values of the lines that `NODE_HISTORY`, `RANK_HISTORY` and `SELDOM_RANK_HISTORY` name."""
    ledgers: Mapping[str, tuple[Ledger, ...]] = {}
    """By server: running totals at its pages of the last quarter of an hour, oldest first."""
    events: tuple[Event, ...] = ()
    """Events kept since the newest start of each server, oldest first, bounded."""
    incidents: Incidents = Incidents()
    """Kills, XIDs, failed pins, exceptions, signals of any source."""
    ready_since: Mapping[str, float] = {}
    """By server: monotonic seconds when it was first seen ready."""
    returned: tuple[ReturnedRank, ...] = ()
    stuck_since: Mapping[RankKey, float] = {}
    """By rank: monotonic seconds since when its process is in D, Z or X without a break."""
    orphan_since: Mapping[RankKey, float] = {}
    """The same for a rank whose main process is gone."""
    pending: tuple[Pending, ...] = ()
    """Pools of living ranks with readable maps: planned, and what is not resident yet."""
    hbm: Mapping[RankKey, RankHbm] = {}
    """By rank: HBM baselines and peaks."""
    seen_up: frozenset[str] = frozenset()
    """Ids of servers whose HTTP server has answered at least once."""
    logged: Mapping[str, LoggedServer] = {}
    """By server: what its log has said since its newest start."""
    since_start: bool = False
    """These samples are all there will be (`inspect`): a rule with a duration judges a single page's totals, and says
    `since_start: true` in its evidence."""

    log: EventLog = EventLog()
    """What the servers' logs have said, by server and kind."""
    activities: Mapping[str, Activity] = {}
    """By server: when it last did something."""
    requests: Mapping[str, Sequence[RequestRecord]] = {}
    """By server: its newest finished requests, bounded, where it records them."""
    launches: Mapping[str, tuple[Launch, ...]] = {}
    """By server: its launches, the present one last."""

    def window(self, server: str, seconds: float) -> Window | None:
        """Totals over at least that long, since the server's start where no more samples will come; else None."""
        kept = self.ledgers.get(server, ())
        found = over(kept, seconds)
        return Window(None, kept[-1]) if found is None and kept and self.since_start else found

    def windows(self, seconds: float) -> Iterator[tuple[ServerVerdict, Window]]:
        """`window` of every server that has one."""
        for server in self.servers:
            window = self.window(server.id, seconds)
            if window is not None:
                yield server, window

    def recent(self, server: str, kind: str, seconds: float) -> tuple[Event, ...]:
        """Log events of the last seconds, oldest first; all that are kept where no more samples will come."""
        since = float("-inf") if self.since_start else self.sample.at_unix_seconds - seconds
        return tuple(event for event in self.log.all_of(server, kind) if event.at_unix_seconds >= since)

    def since(self, seconds: float) -> float:
        """Unix time before which what happened is history; nothing is, where no more samples will come."""
        return float("-inf") if self.since_start else self.sample.at_unix_seconds - seconds

    def ready_for_seconds(self, server: str) -> float | None:
        """How long a server has been ready, None while it is not."""
        since = self.ready_since.get(server)
        return None if since is None else self.sample.at_monotonic_seconds - since

    def ranks_of(self, server: str) -> tuple[RankVerdict, ...]:
        """The ranks of one server, in rank order."""
        return self._ranks_by_server.get(server, ())

    def rank_plan(self, rank: RankVerdict) -> RankPlan | None:
        """The plan of a rank, None where there is no plan for it."""
        return self._rank_plans.get((rank.server, rank.rank))

    def plan_of(self, server: str) -> Plan | None:
        """The plan of a server."""
        return self._plans.get(server)

    @functools.cached_property
    def _plans(self) -> dict[str, Plan | None]:
        return {server.id: server.plan for server in self.servers}

    @functools.cached_property
    def _rank_plans(self) -> dict[tuple[str, str], RankPlan]:
        return {
            (server.id, planned.rank): planned
            for server in self.servers
            for planned in (server.plan.ranks if server.plan else ())
        }

    @functools.cached_property
    def _ranks_by_server(self) -> dict[str, tuple[RankVerdict, ...]]:
        found: dict[str, list[RankVerdict]] = {}
        for rank in self.ranks:
            found.setdefault(rank.server, []).append(rank)
        return {server: tuple(ranks) for server, ranks in found.items()}


Rule = Callable[[Context], Iterable[Finding]]
