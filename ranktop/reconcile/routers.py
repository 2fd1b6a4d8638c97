"""Latency from admission, by a router's own histograms: it counts from when the client's request came in."""

from __future__ import annotations

from typing import NamedTuple

from ranktop.reconcile.histograms import quantile
from ranktop.reconcile.verdict import ServiceLatency
from ranktop.sample import MetricsPage, SeriesKey

# The gateway's (its metrics reference) and its predecessor's, the more exact first.
_FAMILIES = (
    "smg_http_request_duration_seconds",
    "sgl_router_generate_duration_seconds",
    "sgl_router_request_duration_seconds",
)
_NOT_GENERATING = ("/health", "/liveness", "/readiness", "/metrics", "/v1/models", "/get_", "/workers", "/list_workers")


class RouterDigest(NamedTuple):
    """A router's newest page, and the latency between it and the page before."""

    page: MetricsPage
    latency: ServiceLatency


def router_digest(known: RouterDigest | None, page: MetricsPage) -> RouterDigest:
    """The digest of the newest page; the one that is known, where there is no newer page."""
    if known is not None and known.page.at_unix_seconds == page.at_unix_seconds:
        return known
    return RouterDigest(page, admission_latency(known.page if known is not None else None, page))


def admission_latency(previous: MetricsPage | None, current: MetricsPage) -> ServiceLatency:
    """Quantiles in seconds over the window, since the router's start when there is no page before.

    Of the first family on the page, without paths that generate nothing.
    """
    for family in _FAMILIES:
        name = f"{family}_bucket"
        now = _buckets(current, name)
        if now:
            then = _buckets(previous, name) if previous is not None else {}
            # A count that went back is another process's: all of it is of the window.
            if any(count < then.get(key, 0.0) for key, count in now.items()):
                then = {}
            counts: dict[float, float] = {}
            for key, count in now.items():
                bound = _bound(key)
                counts[bound] = counts.get(bound, 0.0) + count - then.get(key, 0.0)
            return ServiceLatency(quantile(counts, 0.5), quantile(counts, 0.95), quantile(counts, 0.99))
    return ServiceLatency()


def _bound(key: SeriesKey) -> float:
    """Upper bound of a bucket; one that cannot be read is the open one, which holds no more than all."""
    try:
        return float(key.label("le") or "")
    except ValueError:
        return float("inf")


def _buckets(page: MetricsPage, name: str) -> dict[SeriesKey, float]:
    return {
        key: count
        for key, count in page.points
        if key.name == name and not (key.label("path") or key.label("route") or "").startswith(_NOT_GENERATING)
    }
