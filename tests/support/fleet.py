"""A fleet without Prometheus: exporters' pages of made-up nodes, and a source that answers from them."""

from __future__ import annotations

from functools import cache

from msgspec.structs import replace

from ranktop.exporter.families import points
from ranktop.exporter.page import render
from ranktop.reconcile import Reconciler
from ranktop.reconcile.verdict import Service, ServiceLatency, TierShares, Verdict
from support import samples


@cache
def healthy() -> Verdict:
    """Eight ranks as planned, with traffic."""
    reconciler = Reconciler()
    reconciler.update(samples.healthy())
    return with_traffic(reconciler.update(samples.healthy(5)))


@cache
def troubled() -> Verdict:
    """TP3 holds a pool that is too large."""
    reconciler = Reconciler()
    for second in (0, 5):
        verdict = reconciler.update(samples.with_pool(samples.healthy(second), 3, 132_000_000_000, 24_147_002_880))
    return with_traffic(verdict)


def with_traffic(verdict: Verdict, ttft_p95_seconds: float = 0.4, role: str = "unified") -> Verdict:
    """The same with tiers, latencies and a role."""
    (server,) = verdict.servers
    server = replace(
        server,
        role=role,
        tiers=TierShares(0.5, 0.25, 0.05, 0.2, "reported", 1000, 5.0),
        service=Service(
            ttft_seconds=ServiceLatency(0.2, ttft_p95_seconds, 0.9), tokens_per_second=812.0, running=3, queued=1
        ),
    )
    return replace(verdict, servers=(server,), tiers=server.tiers)


def page(verdict: Verdict) -> bytes:
    """What its exporter would answer."""
    return render(points(verdict))
