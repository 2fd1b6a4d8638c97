"""A rank's host memory: pools against the plan, pins, anonymous memory, resident set."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ranktop.plan.plan import HostPlan, RankPlan
from ranktop.reconcile.compare import compare, reading
from ranktop.reconcile.pins import Pins
from ranktop.reconcile.pools import ExpectedPool, PoolMatch
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.verdict import Line
from ranktop.sample import RankProcess


def expected_pools(plan: RankPlan | None) -> tuple[ExpectedPool, ...]:
    """The pools that the plan says this rank maps, in SGLang's order of allocation, as allocated."""
    if plan is None or plan.host is None:
        return ()
    host = plan.host
    pools = (
        ("host.primary", host.primary_bytes),
        ("host.indexer", host.indexer_allocated_bytes),
        ("host.draft", host.draft_bytes),
        ("host.draft_indexer", host.draft_indexer_bytes),
    )
    return tuple(ExpectedPool(line, size) for line, size in pools if size)


def pool_lines(plan: RankPlan | None, matches: Sequence[PoolMatch], thresholds: Thresholds) -> tuple[Line, ...]:
    """One line a planned pool."""
    if plan is None or plan.host is None:
        return ()
    return tuple(_pool_line(plan.host, match, thresholds) for match in matches)


def missing_pool_lines(plan: RankPlan | None, missing: str) -> tuple[Line, ...]:
    """The same where the rank's maps could not be read, and `missing` says why."""
    return tuple(
        compare(pool.line, pool.planned_bytes, None, source="computed", detail=missing) for pool in expected_pools(plan)
    )


def process_lines(process: RankProcess | None, pins: Pins, plan: RankPlan | None) -> tuple[Line, ...]:
    """Pins, anonymous memory, resident set and its peak, and the bookkeeping that hides in anonymous memory."""
    anon = rss = peak = None
    if process is not None:
        anon, file, shmem = process.rss_anon_bytes, process.rss_file_bytes, process.rss_shmem_bytes
        rss = anon + file + shmem if anon is not None and file is not None and shmem is not None else None
        peak = process.vm_hwm_bytes
    gone = "no process of this rank"
    return (
        _pinned(pins),
        reading("host.anon", anon, source="measured", missing=gone),
        reading("host.rss", rss, source="measured", missing=gone),
        reading("host.peak", peak, source="measured", missing=gone),
        _bookkeeping(plan.host.bookkeeping_bytes if plan and plan.host else None),
    )


@functools.lru_cache(maxsize=64)
def _pinned(pins: Pins) -> Line:
    """Only the node's sum of pins is known, so a rank never gets a number of its own."""
    return reading("host.pinned", None, source=None, missing=f"{pins.verdict}: {pins.reason}")


@functools.lru_cache(maxsize=64)
def _bookkeeping(planned_bytes: int | None) -> Line:
    """The same of all ranks of a server."""
    detail = "part of the rank's anonymous memory; nothing tells it apart"
    return compare("host.bookkeeping", planned_bytes, None, source="computed", detail=detail)


def _pool_line(host: HostPlan, match: PoolMatch, thresholds: Thresholds) -> Line:
    if match.mapping is None or match.seen_bytes is None:
        detail = "no resident mapping of this size"
        return compare(match.line, match.planned_bytes, None, source="computed", detail=detail)
    page_tokens = host.tokens // host.pages if host.tokens and host.pages else 64
    page_a_layer = host.row_bytes * page_tokens * host.layers
    tolerance = max(
        match.planned_bytes * thresholds.pool_tolerance_ratio, page_a_layer, match.mapping.page_size_bytes - 1
    )
    return compare(
        match.line,
        match.planned_bytes,
        match.seen_bytes,
        tolerance=tolerance,
        source="measured",
        detail=f"{match.mapping.kind} mapping at {match.mapping.start_address:#x}"
        + ("" if match.exact else ", the nearest in size"),
        mapped_bytes=match.mapping.size_bytes,
    )
