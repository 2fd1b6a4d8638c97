"""Ranks over time: who is here, who went, who came back, and since when one is stuck in a state."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ranktop.sample import Processes, RankProcess, Sample

RankKey = tuple[str, str]
"""(server id, rank tag)."""

REMEMBERED_SECONDS = 3600.0
"""How long a rank that ended with its server, or that came back, is remembered."""

_STUCK_STATES = frozenset("DZX")


class GoneRank(Struct, frozen=True):
    """A rank that was there and is not any more."""

    process: RankProcess
    gone_unix_seconds: float
    server_gone: bool
    """Its main process went too."""


class ReturnedRank(Struct, frozen=True):
    """A rank whose process is another than before."""

    before: RankProcess
    after: RankProcess
    at_unix_seconds: float
    server_too: bool
    """Its main process is another as well: the whole server was started again."""


class Lives(Struct, frozen=True):
    """All that is remembered of processes. Keys are (server, rank tag)."""

    present: Mapping[RankKey, RankProcess] = {}
    rank_mains: Mapping[RankKey, int | None] = {}
    """Start ticks of the main process under which a rank was last seen."""
    gone: Mapping[RankKey, GoneRank] = {}
    returned: Mapping[RankKey, ReturnedRank] = {}
    stuck_since: Mapping[RankKey, float] = {}
    """Monotonic seconds since when a rank is seen in D, Z or X without a break."""
    orphan_since: Mapping[RankKey, float] = {}
    """The same for a rank without a main process."""


def follow(known: Lives, sample: Sample) -> Lives:
    """What the processes of this sample add; nothing changes while they cannot be read."""
    if sample.processes is None:
        return known
    present = {(rank.server, str(rank.tag)): rank for rank in sample.processes.ranks}
    mains = living_mains(sample.processes)
    oldest = sample.at_unix_seconds - REMEMBERED_SECONDS
    returned = {key: rank for key, rank in known.returned.items() if rank.at_unix_seconds >= oldest}
    rank_mains: dict[RankKey, int | None] = {key: known.rank_mains.get(key) for key in known.gone}
    for key in known.present:
        rank_mains[key] = known.rank_mains.get(key)
    for key, rank in present.items():
        before = known.present.get(key) or (known.gone[key].process if key in known.gone else None)
        if before is not None and (before.pid, before.start_ticks) != (rank.pid, rank.start_ticks):
            server_too = mains.get(rank.server) != known.rank_mains.get(key)
            returned[key] = ReturnedRank(before, rank, sample.at_unix_seconds, server_too)
        rank_mains[key] = mains.get(rank.server)
    now = sample.at_monotonic_seconds
    return Lives(
        present=present,
        rank_mains=rank_mains,
        gone=_gone(known, present, mains, sample.at_unix_seconds),
        returned=returned,
        stuck_since={
            key: known.stuck_since.get(key, now) for key, rank in present.items() if rank.state in _STUCK_STATES
        },
        orphan_since={key: known.orphan_since.get(key, now) for key, rank in present.items() if rank.orphan},
    )


def living_mains(processes: Processes) -> dict[str, int]:
    """Start ticks by server of main processes that are not dead already."""
    return {server.id: server.start_ticks for server in processes.servers if server.state not in ("Z", "X")}


def _gone(
    known: Lives, present: Mapping[RankKey, RankProcess], mains: Mapping[str, int], at_unix_seconds: float
) -> dict[RankKey, GoneRank]:
    oldest = at_unix_seconds - REMEMBERED_SECONDS
    gone = {
        key: rank
        for key, rank in known.gone.items()
        if key not in present and not (rank.server_gone and rank.gone_unix_seconds < oldest)
    }
    for key, rank in known.present.items():
        if key not in present:
            gone[key] = GoneRank(rank, at_unix_seconds, rank.server not in mains)
    # A main process that outlives its ranks by a moment still ended with them, also when another has its address now.
    return {
        key: GoneRank(rank.process, rank.gone_unix_seconds, True)
        if not rank.server_gone and mains.get(rank.process.server) != known.rank_mains.get(key)
        else rank
        for key, rank in gone.items()
    }
