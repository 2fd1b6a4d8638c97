"""Deaths for memory: the kernel's victim, the constraint, its limit, the plan, and who grew last."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.numa_topology import parse_id_list
from ranktop.reconcile.wording import counted
from ranktop.sample import Event
from ranktop.why.death import Claim, Death
from ranktop.why.evidence import Evidence, Remains
from ranktop.why.kills import Shortage, is_in, shortages
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
_NODE_LISTS = {"CONSTRAINT_MEMORY_POLICY": "nodemask", "CONSTRAINT_CPUSET": "mems_allowed"}
_MAX_NAMED = 8


def oom_deaths(evidence: Evidence) -> Iterator[Death]:
    """One death for every shortage that the kernel told of, then one for every cgroup whose kills it did not."""
    found = shortages(
        (log.source, event) for log in evidence.kernel for event in log.events if event.kind == "oom_kill"
    )
    for shortage in found:
        yield _killed(evidence, shortage)
    told = [kill for shortage in found for kill in shortage.kills]
    for group in evidence.remains:
        if not any(is_in(kill, group) for kill in told):
            yield _counted(evidence, group)
    since_boot = evidence.kills_since_boot or 0
    if since_boot and not evidence.kernel and not evidence.remains:
        yield _uncounted(since_boot)


def _killed(evidence: Evidence, shortage: Shortage) -> Death:
    first, source = shortage.first, shortage.source
    pids = tuple(pid for kill in shortage.kills if isinstance(pid := kill.fields.get("pid"), int))
    owner = owner_of(evidence, first.fields.get("pid"))
    name = _name(evidence, first)
    others = len(shortage.kills) - 1
    more = f" and {others} more" if others else ""
    group = next((group for group in evidence.remains if is_in(first, group)), None)
    limit = _limit(evidence, first, group)
    claims = [
        _victims(evidence, shortage),
        _constraint(first, source),
        limit,
        planned_claim(planned_pools(evidence, owner.server if owner else None), limit.evidence.get("limit_bytes")),
        _grew(evidence, first.at_unix_seconds),
        *_group(evidence, first, group),
    ]
    return Death(
        "out of memory",
        f"the kernel killed {name}{more}",
        tuple(claims),
        first.at_unix_seconds,
        pids,
        owner.server if owner else None,
        owner.rank if owner else None,
        any(is_sglang(evidence, kill.fields.get("pid"), kill.fields.get("comm")) for kill in shortage.kills),
    )


def _name(evidence: Evidence, kill: Event) -> str:
    pid, comm = kill.fields.get("pid"), kill.fields.get("comm")
    owner = owner_of(evidence, pid)
    return f"pid {pid} ({comm})" if owner is None else f"{owner.rank} of {owner.server} (pid {pid}, {comm})"


def _short_name(evidence: Evidence, kill: Event) -> str:
    owner = owner_of(evidence, kill.fields.get("pid"))
    return owner.rank if owner is not None else f"pid {kill.fields.get('pid')}"


def _victims(evidence: Evidence, shortage: Shortage) -> Claim:
    """The first in full, of the others who they were and what all held together."""
    numbers = [
        {"pid": kill.fields["pid"], **{key: kill.fields[key] for key in _KINDS if key in kill.fields}}
        for kill in shortage.kills
    ]
    first = shortage.first
    held = ", ".join(f"{first.fields[key] / 1e9:.2f} GB {kind}" for key, kind in _KINDS.items() if key in first.fields)
    text = f"{_name(evidence, first)} held {held}" if held else _name(evidence, first)
    others = [kill for kill in shortage.kills if kill is not first]
    if others:
        names = [_short_name(evidence, kill) for kill in others[:_MAX_NAMED]]
        more = f" and {len(others) - _MAX_NAMED} more" if len(others) > _MAX_NAMED else ""
        total = sum(value for one in numbers for key, value in one.items() if key != "pid")
        text += f"; also {', '.join(names)}{more}: {total / 1e9:.2f} GB in all"
    return Claim("victim", text, "proven", shortage.source, {"processes": numbers})


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
            return _recorded_limit(evidence, event.fields.get("oom_memcg"))
        peak = f", peak {group.peak_bytes / 2**30:.1f} GiB" if group.peak_bytes is not None else ""
        where = "there" if group.limit_path == event.fields.get("oom_memcg") else f"by {group.limit_path}"
        text = f"{group.limit_bytes / 2**30:.1f} GiB, set {where}{peak}"
        return Claim("limit", text, "proven", "cgroup", {"limit_bytes": group.limit_bytes})
    nodes = str(event.fields.get(_NODE_LISTS.get(str(event.fields.get("constraint")), ""), ""))
    if nodes:
        sizes = [evidence.node_total_bytes.get(node) for node in parse_id_list(nodes)]
        known = [size for size in sizes if size is not None]
        if not known or len(known) < len(sizes):
            return Claim("limit", f"the memory of nodes {nodes}, which is not known here", "unknown")
        text = f"{sum(known) / 1e9:.2f} GB MemTotal of nodes {nodes}"
        return Claim("limit", text, "likely", "/sys/devices/system/node", {"limit_bytes": sum(known)})
    total = evidence.host_total_bytes
    if total is None:
        return Claim("limit", "the host's memory is not known", "unknown")
    return Claim("limit", f"{total / 1e9:.2f} GB MemTotal", "likely", "/proc/meminfo", {"limit_bytes": total})


def _recorded_limit(evidence: Evidence, path: object) -> Claim:
    """Of a cgroup that is not there any more."""
    for recorded in evidence.recordings:
        if recorded.limit_bytes is not None and recorded.limit_path == path:
            text = f"{recorded.limit_bytes / 2**30:.1f} GiB, as recorded: the cgroup itself is gone"
            return Claim("limit", text, "likely", recorded.source, {"limit_bytes": recorded.limit_bytes})
    return Claim("limit", "the cgroup is gone, and its limit with it", "unknown")


def _grew(evidence: Evidence, at_unix_seconds: float | None = None) -> Claim:
    """`likely` when the rank's growth is at least half of what MemAvailable lost meanwhile. Minutes after the death,
    where its time is known, tell nothing."""
    before = [
        recorded
        for recorded in evidence.recordings
        if at_unix_seconds is None or recorded.since_unix_seconds < at_unix_seconds
    ]
    for recorded in before:
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
    if before:
        why = "no rank grew enough to be the cause"
    else:
        why = "not recorded: the recording begins after the death" if evidence.recordings else "no recording"
    return Claim("grew_last", f"{why}; the victim is only the largest of near-equals", "unknown")


def _group(evidence: Evidence, event: Event, group: Remains | None) -> list[Claim]:
    """memory.oom.group: the whole cgroup dies together."""
    told = next(
        (log.source for log in evidence.kernel for other in log.events if other.kind == "oom_group"),
        None,
    )
    if group is not None and group.oom_group:
        return [Claim("group", "memory.oom.group is set: all processes of the cgroup died", "proven", "cgroup")]
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
    kills = counted(group.oom_kill_count, "kill")
    return Death("out of memory", f"{kills} for memory in {name}, since it was made", tuple(claims))


def _uncounted(kills: int) -> Death:
    """Nothing but the kernel's own count is left: whose they were and when is not known."""
    count = counted(kills, "kill")
    text = f"{count} for memory since boot; only the kernel's log, which is not readable here, names whom"
    return Death(
        "out of memory",
        text,
        (Claim("victim", text, "unknown", "/proc/vmstat", {"kills": kills}),),
        is_sglang=False,
    )
