"""Work at the door and nothing moves: SERVER-HUNG, PD-STUCK, METRICS-STALE."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding
from ranktop.reconcile.activity import Activity
from ranktop.reconcile.rules.evidence import evidence
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.series_by_version import is_before
from ranktop.reconcile.verdict import ServerVerdict
from ranktop.reconcile.wording import counted


def server_hung(context: Context) -> Iterator[Finding]:
    """No batch, no log line, no GPU use for a minute and three pages. A long prefill, a graph or a JIT uses the GPU."""
    limits = context.thresholds
    now = context.sample.at_monotonic_seconds
    for server in context.servers:
        activity = context.activities.get(server.id)
        if activity is None or not activity.is_gpu_read:
            continue
        if activity.pages_batchless < limits.hung_pages and not activity.is_http_silent:
            continue
        idle = activity.idle_seconds(now)
        # Before its first batch a server compiles kernels, on CPUs alone.
        if idle is None or not activity.forward_count or idle < limits.hung_seconds:
            continue
        yield Finding(
            "SERVER-HUNG",
            "critical",
            f"no batch, no log line and no GPU use for {idle:.0f} s, with "
            + _count(activity.door_requests, "client" if activity.is_http_silent else "request")
            + " at the door",
            scope="server",
            server=server.id,
            **evidence(
                "measured", door_requests=activity.door_requests, idle_seconds=idle, pages=activity.pages_batchless
            ),
            advice="take this server out of the router first; before a restart keep what `ranktop stack RANK` shows "
            "(where a rank waits) and a `ranktop bundle`",
        )


def pd_stuck(context: Context) -> Iterator[Finding]:
    """Requests wait in the bootstrap or in-flight queue, or everything stands, and no batch runs."""
    limits = context.thresholds
    now = context.sample.at_monotonic_seconds
    for server in context.servers:
        activity = context.activities.get(server.id)
        if activity is None or not _is_stuck(context, server, activity):
            continue
        still = activity.batchless_seconds(now) or 0.0
        left = max(0.0, limits.pd_timeout_seconds - still)
        queues = _queues(context, server.id)
        told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in queues.items() if count)
        yield Finding(
            "PD-STUCK",
            "critical",
            f"no batch for {still:.0f} s with {_count(activity.door_requests, 'request')} at the door; SGLang gives "
            f"up in {left:.0f} s" + (f" ({told})" if told else ""),
            scope="server",
            server=server.id,
            **evidence(
                "reported", door_requests=activity.door_requests, batchless_seconds=still, seconds_left=left, **queues
            ),
            advice="compare registered ranks on the bootstrap server with the plan, and the peer's queues: the prefill "
            "side waits for a decode that does not take over, or the other way round",
        )


def metrics_stale(context: Context) -> Iterator[Finding]:
    """Scheduler gauges stand still while work is at the door: what they show is old."""
    limits = context.thresholds
    now = context.sample.at_monotonic_seconds
    for server in context.servers:
        activity = context.activities.get(server.id)
        if activity is None or not activity.forward_count or activity.pages_still < limits.hung_pages:
            continue
        frozen = activity.frozen_seconds(now)
        if frozen is None or frozen < limits.stale_seconds:
            continue
        loads = is_before(server.version, "0.5.23")
        yield Finding(
            "METRICS-STALE",
            "warn",
            f"the gauges have not moved for {frozen:.0f} s with {_count(activity.door_requests, 'request')} at the door"
            + (" (/v1/loads freezes with them)" if loads else ""),
            scope="server",
            server=server.id,
            **evidence(
                "reported", door_requests=activity.door_requests, frozen_seconds=frozen, pages=activity.pages_still
            ),
            advice="trust http_requests_active, GPU use and the log instead: until 0.5.22 gauges freeze while a "
            "bootstrap queue is not empty",
        )


def _count(number: int | None, what: str) -> str:
    return "work" if number is None else counted(number, what)


def _is_stuck(context: Context, server: ServerVerdict, activity: Activity) -> bool:
    """No batch for a while on a prefill or decode server, with work waiting for the other side or nothing moving."""
    limits = context.thresholds
    if server.role not in ("prefill", "decode") or activity.pages_batchless < limits.hung_pages:
        return False
    now = context.sample.at_monotonic_seconds
    still = activity.batchless_seconds(now)
    if still is None or still < limits.stuck_seconds:
        return False
    if activity.is_gpu_read and activity.gpu_at is not None and now - activity.gpu_at < limits.stuck_seconds:
        return False
    if any(_queues(context, server.id).values()):
        return True
    frozen = activity.frozen_seconds(now)
    # Before its first batch a server compiles kernels, and its gauges have nothing to tell.
    return bool(activity.forward_count) and frozen is not None and frozen >= limits.stuck_seconds


_QUEUES = (
    "bootstrap_queue_requests",
    "inflight_queue_requests",
    "prealloc_queue_requests",
    "transfer_queue_requests",
)


def _queues(context: Context, server: str) -> dict[str, int]:
    """Requests that wait for the other side, by `/v1/loads`, summed over DP ranks."""
    loads = context.sample.loads.get(server, ())
    return {
        name: sum(counts)
        for name in _QUEUES
        if (counts := [count for load in loads if (count := getattr(load, name)) is not None])
    }
