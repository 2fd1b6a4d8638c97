"""What a rule is: a pure function from what is known now to the findings that hold now."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from ranktop.finding import Finding
from ranktop.plan.plan import Plan, RankPlan
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.verdict import NodeVerdict, RankVerdict, ServerVerdict
from ranktop.sample import RankProcess, Sample


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
    available_history: tuple[tuple[float, int], ...] = ()
    """(monotonic seconds, MemAvailable bytes) over the trend window, oldest first."""
    seen_up: frozenset[str] = frozenset()
    """Ids of servers whose HTTP server has answered at least once."""

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
