"""Deaths for memory: the kernel's victim, the constraint, its limit, the plan, and who grew last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ranktop.sample import Event
from ranktop.why.death import Claim, Death
from ranktop.why.evidence import Evidence, Remains
from ranktop.why.planned import planned_claim, planned_pools
from ranktop.why.who import is_sglang, owner_of

_CONSTRAINTS = {
    "CONSTRAINT_MEMORY_POLICY": "a NUMA node that the victim is bound to was full",
    "CONSTRAINT_CPUSET": "the memory nodes of its cpuset were full",
    "CONSTRAINT_NONE": "the host's memory",
}
_KINDS = {
    "shmem_rss_bytes": "of shared memory",
    "anon_rss_bytes": "of its own",
    "file_rss_bytes": "of files",
}
_SAME_SECONDS = 5.0


def oom_deaths(evidence: Evidence) -> Iterator[Death]:
    """One death for every kill that the kernel told, then one for every cgroup whose kills it did not."""
    kills = _once((log.source, event) for log in evidence.kernel for event in log.events if event.kind == "oom_kill")
    for source, event in kills:
        yield _killed(evidence, source, event)
    told = [event for _, event in kills]
    for group in evidence.remains:
        if not any(_is_in(event, group) for event in told):
            yield _counted(evidence, group)


def _killed(evidence: Evidence, source: str, event: Event) -> Death:
    fields = event.fields
    pid, comm = fields.get("pid"), fields.get("comm")
    owner = owner_of(evidence, pid)
    name = f"pid {pid} ({comm})" if owner is None else f"{owner.rank} of {owner.server} (pid {pid}, {comm})"
    sizes = {key: fields[key] for key in _KINDS if key in fields}
    held = ", ".join(f"{value / 1e9:.2f} GB {_KINDS[key]}" for key, value in sizes.items())
    group = next((group for group in evidence.remains if _is_in(event, group)), None)
    limit = _limit(evidence, event, group)
    claims = [
        Claim("victim", f"{name} held {held}" if held else name, "proven", source, {"pid": pid, **sizes}),
        _constraint(event, source),
        limit,
        planned_claim(planned_pools(evidence, owner.server if owner else None), limit.evidence.get("limit_bytes")),
        _grew(evidence),
    ]
    claims += _group(evidence, event, group)
    return Death(
        "out of memory",
        f"the kernel killed {name}",
        tuple(claims),
        event.at_unix_seconds,
        (pid,) if isinstance(pid, int) else (),
        owner.server if owner else None,
        owner.rank if owner else None,
        is_sglang(evidence, pid, comm),
    )


def _constraint(event: Event, source: str) -> Claim:
    fields = event.fields
    constraint, path = fields.get("constraint"), fields.get("oom_memcg")
    if constraint == "CONSTRAINT_MEMCG" or (constraint is None and fields.get("memcg")):
        return Claim("constraint", f"the memory limit of cgroup {path or '(not named)'}", "proven", source)
    if constraint in _CONSTRAINTS:
        where = f" (nodes {fields['mems_allowed']})" if "mems_allowed" in fields else ""
        return Claim("constraint", f"{_CONSTRAINTS[constraint]}{where}", "proven", source, {"constraint": constraint})
    return Claim(
        "constraint",
        "no cgroup's limit: the host, its NUMA nodes or the cpuset (the kernel's line before it tells which, and is "
        "not here)",
        "likely",
        source,
    )


def _limit(evidence: Evidence, event: Event, group: Remains | None) -> Claim:
    if event.fields.get("memcg"):
        if group is None or group.limit_bytes is None:
            return Claim("limit", "the cgroup is gone, and its limit with it", "unknown")
        peak = f", peak {group.peak_bytes / 2**30:.1f} GiB" if group.peak_bytes is not None else ""
        text = f"{group.limit_bytes / 2**30:.1f} GiB set by {group.limit_path}{peak}"
        return Claim("limit", text, "proven", "cgroup", {"limit_bytes": group.limit_bytes})
    total = evidence.host_total_bytes
    if total is None:
        return Claim("limit", "the host's memory is not known", "unknown")
    return Claim("limit", f"{total / 1e9:.2f} GB MemTotal", "likely", "/proc/meminfo", {"limit_bytes": total})


def _grew(evidence: Evidence) -> Claim:
    """`likely` when the rank's growth is at least half of what MemAvailable lost meanwhile."""
    for recorded in evidence.recordings:
        most = max(recorded.growths, key=lambda growth: growth.growth_bytes, default=None)
        lost = recorded.available_lost_bytes or 0
        if most is None or most.growth_bytes <= 0 or most.growth_bytes < lost / 2:
            continue
        text = (
            f"{most.rank} of {most.server}: own memory +{most.growth_bytes / 1e9:.2f} GB in {most.seconds:.0f} s"
            f" while {lost / 1e9:.2f} GB of MemAvailable went"
        )
        numbers = {"growth_bytes": most.growth_bytes, "seconds": most.seconds, "available_lost_bytes": lost}
        return Claim("grew_last", text, "likely" if lost > 0 else "unknown", recorded.source, numbers)
    why = "no rank grew enough to be the cause" if evidence.recordings else "no recording"
    return Claim("grew_last", f"{why}; the victim is only the largest of near-equals", "unknown")


def _group(evidence: Evidence, event: Event, group: Remains | None) -> list[Claim]:
    """memory.oom.group: the whole cgroup dies together."""
    told = next(
        (log.source for log in evidence.kernel for other in log.events if other.kind == "oom_group"),
        None,
    )
    if group is not None and group.oom_group:
        return [Claim("group", f"memory.oom.group of {group.path}: all its processes died", "proven", "cgroup")]
    if told is not None and event.fields.get("memcg"):
        return [Claim("group", "memory.oom.group: all processes of the cgroup died", "proven", told)]
    return []


def _counted(evidence: Evidence, group: Remains) -> Death:
    """The kernel's line is not here: who died is not known, where and how often is."""
    name = f"pod {group.pod}" if group.pod else f"cgroup {group.path}"
    own = group.own_oom_count
    if group.limit_bytes is None:
        constraint = Claim("constraint", "no limit above it: the host's memory or a NUMA node", "likely", "cgroup")
    elif own:
        constraint = Claim("constraint", f"the memory limit of {group.limit_path}, hit {own} times", "proven", "cgroup")
    else:
        text = f"the memory limit of {group.limit_path}, unless the host itself was out of memory"
        constraint = Claim("constraint", text, "likely", "cgroup")
    peak = f", peak {group.peak_bytes / 2**30:.1f} GiB" if group.peak_bytes is not None else ""
    now = f", {group.current_bytes / 2**30:.1f} GiB now" if group.current_bytes is not None else ""
    limit = (
        Claim(
            "limit",
            f"{group.limit_bytes / 2**30:.1f} GiB set by {group.limit_path}{peak}{now}",
            "proven",
            "cgroup",
            {
                "limit_bytes": group.limit_bytes,
                "peak_bytes": group.peak_bytes,
                "current_bytes": group.current_bytes,
            },
        )
        if group.limit_bytes is not None
        else Claim("limit", f"none set{peak}{now}", "proven", "cgroup")
    )
    claims = [
        Claim("victim", "the kernel's log, which names it, is not here", "unknown"),
        constraint,
        limit,
        planned_claim(planned_pools(evidence), group.limit_bytes),
        _grew(evidence),
    ]
    if group.oom_group:
        claims.append(Claim("group", "memory.oom.group: all its processes died", "proven", "cgroup"))
    kills = "1 kill" if group.oom_kill_count == 1 else f"{group.oom_kill_count} kills"
    return Death("out of memory", f"{kills} for memory in {name}, since it was made", tuple(claims))


def _is_in(event: Event, group: Remains) -> bool:
    """Whether this kill is one that the cgroup counts."""
    paths = [event.fields.get(name) for name in ("task_memcg", "oom_memcg")]
    return any(
        isinstance(path, str) and (path == group.path or path.startswith(f"{group.path.rstrip('/')}/"))
        for path in paths
    )


def _once(found: Iterator[tuple[str, Event]] | Sequence[tuple[str, Event]]) -> list[tuple[str, Event]]:
    """The journal and the kernel's own buffer tell the same kill; the one with its constraint is kept."""
    kept: dict[tuple[object, int], tuple[str, Event]] = {}
    for source, event in sorted(found, key=lambda item: item[1].at_unix_seconds):
        key = (event.fields.get("pid"), round(event.at_unix_seconds / _SAME_SECONDS))
        twin = next((near for near in (key, (key[0], key[1] - 1)) if near in kept), key)
        if twin not in kept or ("constraint" in event.fields and "constraint" not in kept[twin][1].fields):
            kept[twin] = (source, event)
    return list(kept.values())
