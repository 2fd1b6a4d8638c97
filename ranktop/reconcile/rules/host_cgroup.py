"""The memory limit that the ranks run under: HOST-CGROUP."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import SEVERITIES, Finding
from ranktop.reconcile.counters import AT_LIMIT, OOM_KILLS, OOMS, WORKING_SET
from ranktop.reconcile.headrooms import GroupUse, group_uses
from ranktop.reconcile.rules.evidence import size
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.trend import trend
from ranktop.reconcile.windows import gained_lately
from ranktop.reconcile.wording import counted

_ADVICE = (
    "raise the pod's memory limit or relaunch with a smaller --hicache-size (`ranktop preflight` prints the largest "
    "that fits this cgroup); shared memory of host pools is charged here and cannot be reclaimed"
)


_COUNTERS = {OOM_KILLS: "oom_kill_count", OOMS: "oom_count", AT_LIMIT: "max_count"}


def host_cgroup(context: Context) -> Iterator[Finding]:
    """One finding for the tightest limit that says something; `max` events alone are page cache that was reclaimed."""
    uses = group_uses(context.sample)
    found = [finding for use in uses for finding in _judge(context, use)]
    yield from sorted(found, key=lambda finding: -SEVERITIES.index(finding.severity))[:1]


def _judge(context: Context, use: GroupUse) -> Iterator[Finding]:
    limits = context.thresholds
    kills, ooms = _gain(context, use, OOM_KILLS), _gain(context, use, OOMS)
    share = use.working_set_bytes / use.limit_bytes if use.limit_bytes else 1.0
    evidence = {
        "working_set_bytes": use.working_set_bytes,
        "limit_bytes": use.limit_bytes,
        "headroom_bytes": use.headroom_bytes,
        "limit_path": use.limit_path,
    }
    sources: dict[str, str] = dict.fromkeys(("working_set_bytes", "limit_bytes", "headroom_bytes"), use.source)
    amount = f"{size(use.working_set_bytes)} of {size(use.limit_bytes)} ({100 * share:.0f} %)"
    if kills or ooms:
        killed, failed = counted(kills, "process", "processes"), counted(ooms, "allocation")
        said = f"{killed} killed" if kills else f"{failed} failed"
        yield Finding(
            "HOST-CGROUP",
            "critical",
            f"the memory limit was hit: {said} in the last {limits.counter_seconds / 60:.0f} min; {amount} are in use",
            evidence=evidence | {"oom_kills": kills, "ooms": ooms},
            sources=sources | {"oom_kills": use.source, "ooms": use.source},
            advice=_ADVICE,
        )
        return
    left = _time_left(context, use) if share > limits.cgroup_share else None
    if left is not None and left < limits.headroom_critical_seconds:
        yield Finding(
            "HOST-CGROUP",
            "critical",
            f"{amount} of the memory limit and rising: the kernel kills in {left:.0f} s at this rate",
            evidence=evidence | {"time_to_limit_seconds": round(left, 1)},
            sources=sources | {"time_to_limit_seconds": "inferred"},
            advice=_ADVICE,
        )
    elif share > limits.cgroup_share:
        yield Finding(
            "HOST-CGROUP",
            "warn",
            f"{amount} of the memory limit, not counting page cache",
            evidence=evidence,
            sources=sources,
            advice=_ADVICE,
        )
    elif (times := _gain(context, use, AT_LIMIT)) > 0:
        yield Finding(
            "HOST-CGROUP",
            "info",
            f"the memory limit was reached {times} times and page cache given back; {amount} cannot be reclaimed",
            evidence=evidence | {"times_at_limit": times},
            sources=sources | {"times_at_limit": use.source},
            advice="nothing to do: reading weights fills the limit with page cache, which the kernel reclaims",
        )


def _gain(context: Context, use: GroupUse, name: str) -> int:
    """What a counter of the ranks' own cgroups gained lately."""
    seconds = context.thresholds.counter_seconds
    now = {cgroup.path: getattr(cgroup, _COUNTERS[name]) for cgroup in context.sample.cgroups.values()}
    return sum(gained_lately(context.history, (path, "", name), seconds) for path in use.members if now.get(path))


def _time_left(context: Context, use: GroupUse) -> float | None:
    track = context.history.track((use.limit_path, "", WORKING_SET), context.thresholds.headroom_trend_seconds)
    rise = trend(track.seconds, track.values)
    return use.headroom_bytes / rise.per_second if rise is not None and rise.per_second > 0 else None
