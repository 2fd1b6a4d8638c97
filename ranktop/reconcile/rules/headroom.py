"""Room for what is still to come on the host: HOST-HEADROOM."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding
from ranktop.reconcile.history import Track
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.trend import trend


def host_headroom(context: Context) -> Iterator[Finding]:
    """Less is available than the ranks still have to allocate, or the trend reaches the limit within minutes."""
    host = context.sample.host
    if host is None or host.available_bytes is None or host.total_bytes is None:
        return
    source = host.source
    still = still_to_allocate_bytes(context)
    loading = any(not server.is_ready for server in context.servers if server.plan)
    reserve = context.node.line("host.reserve").planned or 0
    needed = still + (int(reserve) if loading else 0)
    if still > 0 and host.available_bytes < needed:
        yield Finding(
            "HOST-HEADROOM",
            "breach",
            f"{host.available_bytes / 1e9:.2f} GB available, {still / 1e9:.2f} GB of planned pools still to come"
            + (f" and {reserve / 1e9:.2f} GB reserve" if loading else ""),
            evidence={"available_bytes": host.available_bytes, "still_to_allocate_bytes": still, "reserve": reserve},
            sources={"available_bytes": source, "still_to_allocate_bytes": "computed", "reserve": "computed"},
            advice="the kernel will kill the largest rank: stop one server on this node, or relaunch with a smaller "
            "--hicache-size (`ranktop preflight` prints the largest that fits)",
        )
    limits = context.thresholds
    left = time_to_limit_seconds(context.history.track(("", "", "host.available"), limits.headroom_trend_seconds))
    scarce = host.available_bytes < host.total_bytes * limits.headroom_trend_share
    if left is not None and left < limits.headroom_critical_seconds and scarce and not loading:
        yield Finding(
            "HOST-HEADROOM",
            "critical",
            f"{host.available_bytes / 1e9:.2f} GB available and falling: none left in {left:.0f} s at this rate",
            evidence={"available_bytes": host.available_bytes, "time_to_limit_seconds": round(left, 1)},
            sources={"available_bytes": source, "time_to_limit_seconds": "inferred"},
            advice="drain this node now; find what grows in the anon column, pools do not grow after ready",
        )


def still_to_allocate_bytes(context: Context) -> int:
    """Planned pools of ranks that live and have not mapped them yet."""
    total = 0
    for rank in context.ranks:
        if rank.pid is None or rank.pid not in context.sample.mappings:
            continue
        for line in rank.lines:
            if line.line.startswith("host.") and line.line in _POOLS and line.planned and line.seen is None:
                total += int(line.planned)
    return total


_POOLS = frozenset({"host.primary", "host.indexer", "host.draft", "host.draft_indexer"})


def time_to_limit_seconds(available: Track) -> float | None:
    """Seconds until nothing is available, by a straight line. None when it does not fall or is not known yet."""
    fall = trend(available.seconds, available.values)
    return available.values[-1] / -fall.per_second if fall is not None and fall.per_second < 0 else None
