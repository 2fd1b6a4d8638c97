"""What a rule is: a pure function from what is known now to the findings that hold now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from ranktop.finding import Finding
from ranktop.plan.plan import Plan, RankPlan
from ranktop.reconcile.history import History
from ranktop.reconcile.ledger import Ledger
from ranktop.reconcile.logged import LoggedServer
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.verdict import NodeVerdict, RankVerdict, ServerVerdict
from ranktop.sample import Event, RankProcess, Sample

HISTORY_LINES = frozenset(
    {"host.available", "host.anon", "hbm.process", "hbm.rest", "l2.used", "numa.local", "host.pressure"}
)
"""Lines that some rule looks back on. A rule that needs another adds it here."""


class GoneRank(Struct, frozen=True):
    """A rank that was there and is not any more."""

    process: RankProcess
    gone_unix_seconds: float
    server_gone: bool
    """Its main process went too."""


class Context(Struct, frozen=True):
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
    """Past values of the lines that `HISTORY_LINES` names, as read at each update."""
    ledgers: Mapping[str, tuple[Ledger, ...]] = {}
    """By server: running totals at its pages of the last quarter of an hour, oldest first."""
    events: tuple[Event, ...] = ()
    """Events kept since the newest start of each server, oldest first, bounded."""
    ready_since: Mapping[str, float] = {}
    """By server: monotonic seconds when it was first seen ready."""
    seen_up: frozenset[str] = frozenset()
    """Ids of servers whose HTTP server has answered at least once."""
    logged: Mapping[str, LoggedServer] = {}
    """By server: what its log has said since its newest start."""
    since_start: bool = False
    """These samples are all there will be (`inspect`): a rule with a duration judges a single page's totals, and says
    `since_start: true` in its evidence."""

    def ready_for_seconds(self, server: str) -> float | None:
        """How long a server has been ready, None while it is not."""
        since = self.ready_since.get(server)
        return None if since is None else self.sample.at_monotonic_seconds - since

    def ranks_of(self, server: str) -> tuple[RankVerdict, ...]:
        """The ranks of one server, in rank order."""
        return tuple(rank for rank in self.ranks if rank.server == server)

    def rank_plan(self, rank: RankVerdict) -> RankPlan | None:
        """The plan of a rank, None where there is no plan for it."""
        plan = self.plan_of(rank.server)
        return next((planned for planned in plan.ranks if planned.rank == rank.rank), None) if plan else None

    def plan_of(self, server: str) -> Plan | None:
        """The plan of a server."""
        return next((verdict.plan for verdict in self.servers if verdict.id == server), None)


Rule = Callable[[Context], Iterable[Finding]]
