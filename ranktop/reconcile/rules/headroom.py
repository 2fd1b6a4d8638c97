"""Room for what is still to come on the host: HOST-HEADROOM, NUMA-NODE-FULL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ranktop.finding import Finding
from ranktop.reconcile.allocation import Pending
from ranktop.reconcile.counters import NODE_HEADROOM
from ranktop.reconcile.grouping import rank_span
from ranktop.reconcile.headrooms import bound_nodes, group_uses, node_headroom_bytes
from ranktop.reconcile.history import Track
from ranktop.reconcile.rules.evidence import size
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.trend import trend

_SMALLER = (
    "stop one server on this node, or relaunch with a smaller --hicache-size (`ranktop preflight` prints the largest "
    "that fits this cgroup, each NUMA node and the HBM)"
)


def host_headroom(context: Context) -> Iterator[Finding]:
    """Less can be taken than the ranks still have to allocate, or the trend reaches the limit within minutes."""
    yield from _too_little(context)
    yield from _running_out(context)


def node_full(context: Context) -> Iterator[Finding]:
    """A NUMA node has less than the ranks bound to it still have to allocate there."""
    pending = [rank for rank in context.pending if rank.node is not None]
    for node in context.sample.numa or () if pending else ():
        bound = [rank for rank in pending if rank.node == node.node and rank.pending_bytes]
        headroom = node_headroom_bytes(node)
        growth = sum(rank.pending_bytes for rank in bound)
        if headroom is None or headroom >= growth:
            continue
        yield _node_full(node.node, bound, headroom, growth, node.source)


class _Limit(NamedTuple):
    """What can still be taken under a limit, and what the ranks under it have still to allocate."""

    name: str
    left_bytes: int
    still_bytes: int
    source: str


def _limits(context: Context) -> Iterator[_Limit]:
    host, pending = context.sample.host, [rank for rank in context.pending if rank.pending_bytes]
    if host is not None and host.available_bytes is not None:
        yield _Limit("MemAvailable", host.available_bytes, sum(rank.pending_bytes for rank in pending), host.source)
    for use in group_uses(context.sample) if pending else ():
        inside = {pid for pid, cgroup in context.sample.cgroups.items() if cgroup.path in use.members}
        still = sum(rank.pending_bytes for rank in pending if rank.pid in inside)
        yield _Limit(f"cgroup {use.limit_path}", use.headroom_bytes, still, use.source)


def _too_little(context: Context) -> Iterator[Finding]:
    """One finding, for the limit that lacks most."""
    limits = [limit for limit in _limits(context) if limit.still_bytes]
    if not limits:
        return
    name, left, still, source = max(limits, key=lambda limit: limit.still_bytes - limit.left_bytes)
    # SGLang checks its reserve at start only.
    reserve = int(context.node.line("host.reserve").planned or 0) if _is_loading(context) else 0
    if left >= still + reserve:
        return
    yield Finding(
        "HOST-HEADROOM",
        "breach",
        f"{size(still)} of planned pools are still to come"
        + (f" beside {size(reserve)} of reserve" if reserve else "")
        + f", and {size(left)} can be taken ({name})",
        evidence={
            "limit": name,
            "headroom_bytes": left,
            "still_to_allocate_bytes": still,
            "reserve_bytes": reserve,
            "short_bytes": still + reserve - left,
        },
        sources={
            "headroom_bytes": source,
            "still_to_allocate_bytes": "inferred",
            "reserve_bytes": "computed",
            "short_bytes": "inferred",
        },
        advice=f"the kernel will kill the largest rank: {_SMALLER}",
    )


def _running_out(context: Context) -> Iterator[Finding]:
    """Pools do not grow after ready, so a fall is something else. While loading, their own fall is planned for."""
    host = context.sample.host
    if _is_loading(context):
        return
    share = context.thresholds.headroom_trend_share
    falls: list[tuple[float, str, float, str]] = []
    if host is not None and host.available_bytes is not None and host.available_bytes < share * (host.total_bytes or 0):
        left = _left(context, ("", "", "host.available"))
        if left is not None:
            falls.append((left, "MemAvailable", host.available_bytes, host.source))
    for node in context.sample.numa or ():
        headroom = node_headroom_bytes(node)
        if headroom is None or not node.total_bytes or headroom >= share * node.total_bytes:
            continue
        # Only a rank that is bound to a full node is killed for it; others are given memory elsewhere.
        left = _left(context, (str(node.node), "", NODE_HEADROOM)) if node.node in bound_nodes(context.sample) else None
        if left is not None:
            falls.append((left, f"NUMA node {node.node}", headroom, node.source))
    if not falls:
        return
    seconds, name, headroom, source = min(falls)
    if seconds >= context.thresholds.headroom_critical_seconds:
        return
    yield Finding(
        "HOST-HEADROOM",
        "critical",
        f"{name}: {headroom / 1e9:.2f} GB left and falling, none left in {seconds:.0f} s at this rate",
        evidence={"limit": name, "headroom_bytes": int(headroom), "time_to_limit_seconds": round(seconds, 1)},
        sources={"headroom_bytes": source, "time_to_limit_seconds": "inferred"},
        advice="drain this node now; find what grows in the anon column, pools do not grow after ready",
    )


def _left(context: Context, key: tuple[str, str, str]) -> float | None:
    return time_to_limit_seconds(context.history.track(key, context.thresholds.headroom_trend_seconds))


def time_to_limit_seconds(headroom: Track) -> float | None:
    """Seconds until nothing is left, by a straight line. None when it does not fall or is not known yet."""
    fall = trend(headroom.seconds, headroom.values)
    return headroom.values[-1] / -fall.per_second if fall is not None and fall.per_second < 0 else None


def _is_loading(context: Context) -> bool:
    return any(not server.is_ready for server in context.servers if server.plan)


def _node_full(node: int, bound: list[Pending], headroom: int, growth: int, source: str) -> Finding:
    ranks = [rank.rank for rank in bound]
    return Finding(
        "NUMA-NODE-FULL",
        "critical",
        f"node {node} has {size(headroom)} left, and {size(growth)} are still to come: {rank_span(ranks)} bound to it",
        evidence={"node": node, "headroom_bytes": headroom, "growth_bytes": growth, "bound_ranks": len(bound)},
        sources={"headroom_bytes": source, "growth_bytes": "inferred", "bound_ranks": "inferred"},
        advice="membind is strict: the kernel kills although the other node has room. "
        f"Before it does: {_SMALLER}, or move ranks to the other node",
    )
