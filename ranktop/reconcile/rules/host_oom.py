"""The kernel killed something for memory: HOST-OOM-KILL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ranktop.clock import iso_utc
from ranktop.finding import Finding
from ranktop.reconcile.counters import OOM_KILLS, RESIDENT_POOLS, counts_of
from ranktop.reconcile.history import LineKey
from ranktop.reconcile.rules.evidence import size
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.windows import gained_lately
from ranktop.sample import Cgroup, Event

_GROWTH_SECONDS = 120.0
_CONSTRAINTS = {
    "CONSTRAINT_MEMCG": "at the memory limit of a cgroup",
    "CONSTRAINT_MEMORY_POLICY": "as the NUMA node that it is bound to was full",
    "CONSTRAINT_CPUSET": "as the memory nodes of its cpuset were full",
    "CONSTRAINT_NONE": "as the host had no memory left",
}
_SIZES = ("anon_rss_bytes", "shmem_rss_bytes", "file_rss_bytes", "total_vm_bytes", "pid")
_ADVICE = (
    "run `ranktop why` before anything restarts; then `ranktop preflight` with the flags of this launch prints the "
    "largest --hicache-size that fits this cgroup, each NUMA node and the HBM"
)


class Grew(NamedTuple):
    """Whose memory grew most before a kill, and how far that explains it. Bytes are None where nothing was seen."""

    who: str | None
    growth_bytes: int | None
    confidence: str


def oom_kill(context: Context) -> Iterator[Finding]:
    """One finding a victim, by the kernel's log; without it, one by the kernel's and the cgroups' counts."""
    since = context.since(context.thresholds.event_seconds)
    kills = list(context.incidents.of("oom_kill", since_unix_seconds=since))
    newest: dict[tuple[str | None, str | None], Event] = {}
    for event in kills:
        newest[event.server, event.rank] = event
    for event in newest.values():
        yield _killed(context, event, kills)
    if not kills:
        yield from _counted(context)


def _killed(context: Context, event: Event, kills: list[Event]) -> Finding:
    fields = event.fields
    constraint = str(fields.get("constraint") or ("CONSTRAINT_MEMCG" if fields.get("memcg") else ""))
    group = _group_of(context, fields)
    is_foreign = _is_foreign(context, event, constraint)
    grew = grew_last(context, event.at_unix_seconds)
    evidence: dict[str, Any] = {name: fields[name] for name in _SIZES if name in fields}
    evidence |= {
        "constraint": constraint or None,
        "limit_path": fields.get("oom_memcg"),
        "limit_bytes": group.limit_bytes if group else None,
        "oom_group": _is_whole_group(context, group),
        "kills": len(kills),
        "grew_last": grew.who,
        "grew_last_bytes": grew.growth_bytes,
        "grew_last_confidence": grew.confidence,
    }
    shmem = fields.get("shmem_rss_bytes")
    held = f", {size(shmem)} of it shared memory" if isinstance(shmem, int) else ""
    cause = _CONSTRAINTS.get(constraint, "for memory, by a constraint that the kernel's line did not name")
    more = f"; {len(kills)} kills in the last hour" if len(kills) > 1 else ""
    return Finding(
        "HOST-OOM-KILL",
        "info" if is_foreign else "critical",
        f"killed by the kernel {cause}"
        + (" of another tenant" if is_foreign else "")
        + f": pid {fields.get('pid')} ({fields.get('comm', '?')}){held}"
        + more
        + ("" if is_foreign else f". {_who_grew(grew)}"),
        scope="rank" if event.rank is not None else "node",
        server=event.server,
        rank=event.rank,
        since=iso_utc(event.at_unix_seconds),
        evidence=evidence,
        sources={name: "inferred" if name.startswith("grew") else "logged" for name in evidence},
        advice="nothing to do for the ranks of this node" if is_foreign else _ADVICE,
    )


def _counted(context: Context) -> Iterator[Finding]:
    seconds = context.thresholds.counter_seconds
    host = context.sample.host
    groups = {cgroup.path: cgroup for cgroup in context.sample.cgroups.values() if cgroup.oom_kill_count}
    ours = sum(gained_lately(context.history, (path, "", OOM_KILLS), seconds) for path in groups)
    on_host = 0
    if host is not None and host.oom_kill_count:
        on_host = gained_lately(context.history, (counts_of(host), "", OOM_KILLS), seconds)
    kills = ours or on_host
    if not kills:
        return
    grew = grew_last(context, context.sample.at_unix_seconds)
    where = "in the ranks' cgroup" if ours else "on this host"
    log = next((state for state in context.sample.sources if state.name == "kernellog"), None)
    is_read = log is not None and log.state == "ok"
    unnamed = "the kernel's log " + (
        "has not named the victims yet" if is_read else "would name the victims and was not readable"
    )
    yield Finding(
        "HOST-OOM-KILL",
        "critical",
        f"{kills} kill{'' if kills == 1 else 's'} for memory {where} in the last {seconds / 60:.0f} min; {unnamed}. "
        f"{_who_grew(grew)}",
        evidence={
            "kills": kills,
            "grew_last": grew.who,
            "grew_last_bytes": grew.growth_bytes,
            "grew_last_confidence": grew.confidence,
        },
        sources={
            "kills": host.source if host is not None else "measured",
            "grew_last": "inferred",
            "grew_last_bytes": "inferred",
            "grew_last_confidence": "inferred",
        },
        advice=_ADVICE if is_read else f"{_ADVICE}; `ranktop doctor` says what reading the kernel's log needs",
    )


def grew_last(context: Context, at_unix_seconds: float) -> Grew:
    """Whose memory grew most in the two minutes before that time: a rank's own, or a server's host pools.

    `likely` when that is at least half of what MemAvailable lost meanwhile; the victim itself is only the largest of
    near-equals.
    """
    ids = {(rank.server, rank.rank) for rank in context.ranks}
    ids |= {(gone.process.server, str(gone.process.tag)) for gone in context.gone}
    keys = {rank: (server, rank, "host.anon") for server, rank in ids}
    keys |= {f"the host pools of {server}": (server, "", RESIDENT_POOLS) for server, _ in ids}
    growth: dict[str, float] = {}
    for name, key in keys.items():
        values = _before(context, key, at_unix_seconds)
        if len(values) > 1:
            growth[name] = max(values) - values[0]
    left = _before(context, ("", "", "host.available"), at_unix_seconds)
    fall = left[0] - min(left) if left else 0.0
    if not growth:
        return Grew(None, None, "unknown")
    name, most = max(growth.items(), key=lambda item: item[1])
    if most <= 0 or most < fall / 2:
        return Grew(None, round(most), "unknown")
    return Grew(name, round(most), "likely" if fall > 0 else "unknown")


def _before(context: Context, key: LineKey, at_unix_seconds: float) -> list[float]:
    """The readings of the two minutes before, oldest first: the last two minutes are kept finely, hours thinly."""
    end = context.sample.at_monotonic_seconds - (context.sample.at_unix_seconds - at_unix_seconds)
    points: dict[float, float] = {}
    for seconds in (context.thresholds.event_seconds, _GROWTH_SECONDS):
        track = context.history.track(key, seconds)
        points |= zip(track.seconds, track.values, strict=True)
    return [points[at] for at in sorted(points) if end - _GROWTH_SECONDS <= at <= end]


def _who_grew(grew: Grew) -> str:
    victim = "The victim is the largest of near-equals"
    if grew.growth_bytes is None:
        return f"{victim}; who grew last was not seen"
    if grew.who is None:
        return f"{victim}; neither a rank's own memory nor host pools grew enough to be the cause"
    return f"{victim}; {grew.who} grew last, by {grew.growth_bytes / 1e9:.2f} GB ({grew.confidence})"


def _group_of(context: Context, fields: dict[str, Any]) -> Cgroup | None:
    path = fields.get("oom_memcg")
    groups = context.sample.cgroups.values()
    return next((group for group in groups if path in (group.path, group.limit_path)), None)


def _is_whole_group(context: Context, group: Cgroup | None) -> bool | None:
    """memory.oom.group: the whole cgroup dies together."""
    if group is not None and group.oom_group is not None:
        return group.oom_group
    return True if next(context.incidents.of("oom_group"), None) is not None else None


def _is_foreign(context: Context, event: Event, constraint: str) -> bool:
    """A cgroup that holds none of our ranks reached its own limit. Only said where both paths are known."""
    path = event.fields.get("oom_memcg")
    if constraint != "CONSTRAINT_MEMCG" or not isinstance(path, str) or event.rank is not None:
        return False
    # Inside a cgroup namespace the ranks' paths are relative and tell nothing.
    own = [group.path for group in context.sample.cgroups.values()]
    if not own or any(other == "/" or other.startswith("/..") for other in own):
        return False
    return not any(other == path or other.startswith(f"{path.rstrip('/')}/") for other in own) and not any(
        gone.process.pid == event.fields.get("pid") for gone in context.gone
    )
