"""Where the pages of a rank's pools lie, seen from its GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ranktop.reconcile.compare import compare, reading
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.verdict import Line
from ranktop.sample import Placement, share_interval_percent

_NEAR_DISTANCE = 16
"""Up to here SLIT distances mean another part of the same socket (SNC, NPS): facts host-memory section c."""


def local_line(
    placements: Sequence[Placement],
    gpu_node: int | None,
    near: frozenset[int],
    thresholds: Thresholds,
    missing: str,
) -> Line:
    """Share of sampled pages that are local or near to the GPU's node, in percent. `near` is `near_nodes` of it,
    `missing` why no pages are sampled."""
    sampled = sum(placement.sampled_pages - placement.absent_pages for placement in placements)
    if sampled <= 0:
        return reading("numa.local", None, unit="percent", source=None, missing=missing)
    if gpu_node is None:
        return reading("numa.local", None, unit="percent", source=None, missing="the GPU's NUMA node is not known")
    close = sum(pages for placement in placements for node, pages in placement.pages_by_node if node in near)
    low, high = share_interval_percent(close, sampled)
    source = "simulated" if any(placement.source == "simulated" for placement in placements) else "measured"
    return compare(
        "numa.local",
        100.0,
        round(100 * close / sampled, 1),
        unit="percent",
        tolerance=thresholds.numa_far_percent,
        source=source,
        detail=f"GPU on node {gpu_node}, {sampled} pages: {low:.0f} to {high:.0f} %",
    )


def near_nodes(gpu_node: int, distances: Mapping[int, Mapping[int, int]]) -> frozenset[int]:
    """The GPU's node and its siblings on the same socket."""
    from_gpu = distances.get(gpu_node, {})
    return frozenset({gpu_node, *(node for node, distance in from_gpu.items() if distance <= _NEAR_DISTANCE)})
