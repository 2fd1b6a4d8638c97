"""The host stalls or swaps while it serves: HOST-PRESSURE, HOST-SWAP."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding
from ranktop.reconcile.counters import PSI_FULL, PSI_SOME, SWAP_OUT, counts_of
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.windows import held, span_seconds, steady_rate
from ranktop.sample import Pressure


def host_pressure(context: Context) -> Iterator[Finding]:
    """After ready, tasks wait for memory for half a minute: in the ranks' own cgroups, else on the host."""
    if not _all_ready(context):
        return
    found: list[tuple[bool, float, str, Pressure]] = []
    for owner, pressure in _owners(context):
        full = _sustained(context, owner, PSI_FULL, pressure.full_avg10_percent, pressure.full_avg60_percent)
        some = _sustained(context, owner, PSI_SOME, pressure.some_avg10_percent, pressure.some_avg60_percent)
        if full or some:
            found.append((full, pressure.some_avg10_percent or 0.0, owner, pressure))
    if not found:
        return
    is_full, _, owner, pressure = max(found, key=lambda item: (item[0], item[1]))
    where = f"cgroup {owner}" if owner else "the host"
    source = context.sample.host.source if context.sample.host is not None else "measured"
    yield Finding(
        "HOST-PRESSURE",
        "critical" if is_full else "warn",
        f"memory pressure on {where}: "
        + (
            f"every task stalls {pressure.full_avg10_percent:.1f} % of the time"
            if is_full
            else f"some task stalls {pressure.some_avg10_percent:.1f} % of the time"
        ),
        evidence={
            "where": owner or "host",
            "some_avg10_percent": pressure.some_avg10_percent,
            "full_avg10_percent": pressure.full_avg10_percent,
        },
        sources={"some_avg10_percent": source, "full_avg10_percent": source},
        advice="find what else allocates (anon column, other processes) and stop it or move it off this node; host "
        "pools cannot be reclaimed, so the rest of the host pays",
    )


def host_swap(context: Context) -> Iterator[Finding]:
    """After ready, pages go out to swap steadily. Pinned pools cannot; everything else on the host can."""
    host = context.sample.host
    if host is None or not host.swap_out_pages or not _all_ready(context):
        return
    limits = context.thresholds
    track = context.history.track((counts_of(host), "", SWAP_OUT), limits.sustained_seconds)
    rate = steady_rate(track, limits.sustained_seconds)
    if rate is None or rate <= limits.swap_out_bytes_per_second:
        return
    yield Finding(
        "HOST-SWAP",
        "warn",
        f"{rate / 1e6:.1f} MB/s go out to swap for {limits.sustained_seconds:.0f} s",
        evidence={"swap_out_bytes_per_second": round(rate), "swap_free_bytes": host.swap_free_bytes},
        sources={"swap_out_bytes_per_second": host.source, "swap_free_bytes": host.source},
        advice="free memory on this host: what is swapped is the rest of the server and of the system, and it comes "
        "back page by page; relaunch with a smaller --hicache-size at the next planned restart",
    )


def _owners(context: Context) -> Iterator[tuple[str, Pressure]]:
    """The ranks' cgroups where they tell, for another tenant's stall is not the ranks'; else the host."""
    groups = {cgroup.path: cgroup.pressure for cgroup in context.sample.cgroups.values() if cgroup.pressure is not None}
    if groups:
        yield from groups.items()
    elif context.sample.host is not None and context.sample.host.pressure is not None:
        yield "", context.sample.host.pressure


def _sustained(context: Context, owner: str, name: str, now: float | None, minute: float | None) -> bool:
    """Held for the window; before so much was seen, the kernel's own mean over a minute says it."""
    limit = context.thresholds.pressure_percent
    if now is None or now < limit:
        return False
    seconds = context.thresholds.sustained_seconds
    track = context.history.track((owner, "", name), seconds)
    if held(track, seconds, lambda value: value >= limit):
        return True
    return span_seconds(track) < seconds / 2 and minute is not None and minute >= limit


def _all_ready(context: Context) -> bool:
    return bool(context.servers) and all(server.is_ready for server in context.servers)
