"""Memory that grows or lies idle: HOST-ANON-LEAK, HOST-UNREACHABLE-POOL."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.clock import duration
from ranktop.finding import Finding
from ranktop.reconcile.headrooms import group_uses
from ranktop.reconcile.history import Track
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.trend import trend
from ranktop.reconcile.verdict import RankVerdict, ServerVerdict
from ranktop.reconcile.windows import covers


def anon_leak(context: Context) -> Iterator[Finding]:
    """Half an hour after ready, with L2 at its plateau, a rank's anonymous memory still grows in a straight line."""
    limits = context.thresholds
    for server in context.servers:
        ready = context.ready_for_seconds(server.id)
        if ready is None or ready < limits.leak_seconds:
            continue
        for rank in context.ranks_of(server.id):
            track = context.history.track((server.id, rank.rank, "host.anon"), limits.leak_seconds)
            if not covers(track, limits.leak_seconds) or not _grows(track, limits.leak_bytes_per_hour):
                continue
            line = trend(track.seconds, track.values)
            if line is None or line.per_second * 3600 < limits.leak_bytes_per_hour or line.r2 < limits.leak_r2:
                continue
            if _l2_is_still(context, server, rank):
                yield _leak(context, rank, line.per_second, line.r2)


def unreachable_pool(context: Context) -> Iterator[Finding]:
    """L2 stands at a plateau far below its size while tokens are dropped or rejected for want of room."""
    limits = context.thresholds
    for server in context.servers:
        window = context.window(server.id, limits.unreachable_seconds)
        gains = [window.gain(name) for name in ("dropped_tokens", "rejected_tokens")] if window is not None else []
        refused = sum(tokens for tokens in gains if tokens is not None)
        if refused <= 0:
            continue
        for rank in context.ranks_of(server.id):
            total, used = rank.line("l2.total").seen, rank.line("l2.used").seen
            if not total or used is None or used > limits.unreachable_share * total:
                continue
            track = context.history.track((server.id, rank.rank, "l2.used"), limits.unreachable_seconds)
            if not _is_plateau(track, limits.unreachable_seconds, total * limits.plateau_ratio):
                continue
            yield Finding(
                "HOST-UNREACHABLE-POOL",
                "warn",
                f"L2 stays at {100 * used / total:.0f} % of its size while {refused:,.0f} tokens found no room",
                scope="rank",
                server=server.id,
                rank=rank.rank,
                evidence={"used_tokens": used, "total_tokens": total, "refused_tokens": refused},
                sources=dict.fromkeys(("used_tokens", "total_tokens", "refused_tokens"), "reported"),
                advice="the rest of this pool is pinned and never used: look for a second, smaller pool that is full "
                "(Mamba, SWA, indexer: the smallest decides reuse), and compare host tokens with device tokens in "
                "`ranktop plan`; then relaunch with the smaller --hicache-size or with another split",
            )


def _grows(track: Track, per_hour: float) -> bool:
    """Cheap: worth a straight line only if the ends are that far apart."""
    return track.values[-1] - track.values[0] >= 0.5 * per_hour * (track.seconds[-1] - track.seconds[0]) / 3600


def _l2_is_still(context: Context, server: ServerVerdict, rank: RankVerdict) -> bool:
    """No HiCache, or L2 at its plateau: filling it grows its bookkeeping. Not known is not still."""
    if server.plan is not None and not server.plan.launch.hicache:
        return True
    total = rank.line("l2.total").seen
    if not total:
        return False
    track = context.history.track((server.id, rank.rank, "l2.used"), context.thresholds.leak_seconds)
    return _is_plateau(track, context.thresholds.leak_seconds, total * context.thresholds.plateau_ratio)


def _is_plateau(track: Track, seconds: float, tolerance: float) -> bool:
    return covers(track, seconds) and max(track.values) - min(track.values) <= tolerance


def _leak(context: Context, rank: RankVerdict, per_second: float, r2: float) -> Finding:
    host = context.sample.host
    limits = [("MemAvailable", host.available_bytes)] if host is not None and host.available_bytes is not None else []
    own = context.sample.cgroups.get(rank.pid) if rank.pid is not None else None
    limits += [
        (f"cgroup {use.limit_path}", use.headroom_bytes)
        for use in group_uses(context.sample)
        if own is not None and own.path in use.members
    ]
    name, left = min(limits, key=lambda limit: limit[1], default=("", None))
    hours = left / (per_second * 3600) if left is not None else None
    return Finding(
        "HOST-ANON-LEAK",
        "warn",
        f"anonymous memory grows by {per_second * 3600 / 1e9:.2f} GB an hour"
        + (f", {name} is used up in {duration(hours * 3600)}" if hours is not None else "")
        + "; the pools stand still",
        scope="rank",
        server=rank.server,
        rank=rank.rank,
        evidence={
            "growth_bytes_per_hour": round(per_second * 3600),
            "r2": round(r2, 3),
            "anon_bytes": rank.line("host.anon").seen,
            "limit": name or None,
            "time_to_limit_hours": round(hours, 2) if hours is not None else None,
        },
        sources={
            "growth_bytes_per_hour": "inferred",
            "r2": "inferred",
            "anon_bytes": "measured",
            "time_to_limit_hours": "inferred",
        },
        advice="plan a restart before the limit, drained and in its turn; report it with `ranktop stack` of this "
        "rank and a recording. Pools do not grow after ready, so a smaller --hicache-size only buys time",
    )
