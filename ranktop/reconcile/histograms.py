"""Quantiles of Prometheus histograms (cumulative buckets by upper bound `le`), as `histogram_quantile` reads them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ranktop.reconcile.series import Series
from ranktop.reconcile.verdict import ServiceLatency


def buckets(gains: Series, family: str, **wanted: str) -> dict[float, float]:
    """Cumulative counts by upper bound, summed over the family's label sets (is_streaming, ranks)."""
    found: dict[float, float] = {}
    for labels, count in gains.rows(f"{family}_bucket", **wanted):
        try:
            bound = float(labels.get("le", ""))
        except ValueError:
            continue
        if not math.isnan(bound):
            found[bound] = found.get(bound, 0.0) + count
    return found


def quantile(counts: Mapping[float, float], share: float) -> float | None:
    """The value below which `share` (0..1) of the observations lie, interpolated within its bucket.

    None without observations. In the last, open bucket it is that bucket's lower bound: the true value lies above.
    """
    bounds = sorted(counts)
    total = max(counts.values(), default=0.0)
    if total <= 0:
        return None
    wanted = share * total
    below_bound, below_count = 0.0, 0.0
    for bound in bounds:
        # Two scrapes of many processes are not one instant: a cumulative count may dip.
        count = max(counts[bound], below_count)
        if count >= wanted and count > below_count:
            if math.isinf(bound):
                return below_bound
            lower = min(below_bound, bound)
            return lower + (bound - lower) * (max(0.0, wanted - below_count) / (count - below_count))
        below_bound, below_count = bound if not math.isinf(bound) else below_bound, count
    return below_bound


def latency(gains: Series, family: str, **wanted: str) -> ServiceLatency:
    """p50, p95 and p99 of the window, in the family's unit."""
    counts = buckets(gains, family, **wanted)
    return ServiceLatency(quantile(counts, 0.5), quantile(counts, 0.95), quantile(counts, 0.99))


def mean(gains: Series, family: str, **wanted: str) -> float | None:
    """Mean observation of the window, None without observations."""
    count = gains.total(f"{family}_count", **wanted)
    total = gains.total(f"{family}_sum", **wanted)
    return total / count if count and total is not None else None
