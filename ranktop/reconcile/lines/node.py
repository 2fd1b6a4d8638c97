"""The node: host totals, the reserve, what the pools take together, NUMA nodes, pressure, requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ranktop.plan.plan import Plan
from ranktop.reconcile.compare import compare, reading
from ranktop.reconcile.headrooms import group_uses, node_headroom_bytes
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.verdict import Line, ServerVerdict, Source
from ranktop.sample import Host, NumaNode, Placement, Sample


def node_lines(
    sample: Sample,
    plans: Sequence[Plan],
    pools: Line,
    pool_bytes: Mapping[int, float] | None,
    thresholds: Thresholds,
) -> Iterator[Line]:
    """All lines of the node. A source that has not answered leaves its lines `unknown`.

    `pools` is `pools_line`, `pool_bytes` are `pool_bytes_by_node`: both stand still for long.
    """
    host = sample.host
    source: Source = "simulated" if host and host.source == "simulated" else "measured"
    missing = _why(sample, "hostmem")
    yield reading("host.total", host.total_bytes if host else None, source=source, missing=missing)
    yield reading("host.available", host.available_bytes if host else None, source=source, missing=missing)
    yield _cgroup(sample, thresholds)
    yield pools
    yield _reserve(host, plans)
    yield _hugepages(host, source, missing)
    pressure = host.pressure.some_avg10_percent if host and host.pressure else None
    yield reading(
        "host.pressure",
        pressure,
        unit="percent",
        source=source,
        missing="no /proc/pressure/memory here (PSI is off in this kernel)" if host else missing,
    )
    for node in sample.numa or ():
        yield from _numa(node, pool_bytes)


def request_lines(servers: Sequence[ServerVerdict]) -> Iterator[Line]:
    """Running and queued requests over all servers that say."""
    for name, values in (
        ("requests.running", [server.service.running for server in servers]),
        ("requests.queued", [server.service.queued for server in servers]),
    ):
        known = [value for value in values if value is not None]
        yield reading(
            name, sum(known) if known else None, unit="count", source="reported", missing="no server reports requests"
        )


def _cgroup(sample: Sample, thresholds: Thresholds) -> Line:
    """The working set under the limit that leaves least; `planned` is that limit."""
    uses = group_uses(sample)
    if not uses:
        missing = "the ranks' cgroups have no limit" if sample.cgroups else _why(sample, "cgroup")
        return reading("host.cgroup", None, source=None, missing=missing)
    use = uses[0]
    return Line(
        "host.cgroup",
        planned=use.limit_bytes,
        seen=use.working_set_bytes,
        difference=use.working_set_bytes - use.limit_bytes,
        status="over" if use.working_set_bytes > thresholds.cgroup_share * use.limit_bytes else "ok",
        source="simulated" if use.source == "simulated" else "measured",
        detail=f"working set without file pages and reclaimable slab, under the limit of {use.limit_path}",
    )


def pools_line(plans: Sequence[Plan], pools: Sequence[Sequence[Line]]) -> Line:
    """All pools of the node together. `pools` are the lines of each rank's."""
    planned = [plan.node.allocated_bytes for plan in plans if plan.node.allocated_bytes is not None]
    mapped = [
        (line.mapped_bytes, int(line.seen))
        for of_rank in pools
        for line in of_rank
        if line.mapped_bytes is not None and line.seen is not None
    ]
    seen = [size for size, _ in mapped]
    # Every pool is rounded up by the kernel to whole pages of 4 KiB, 2 MiB or 1 GiB.
    rounding = sum(size - exact for size, exact in mapped)
    return compare(
        "host.pools",
        sum(planned) if planned else None,
        sum(seen) if seen else None,
        tolerance=rounding,
        source="measured" if seen else "computed",
        detail="sum over the ranks of this node" if seen else _why_no_pools(plans),
    )


def _why_no_pools(plans: Sequence[Plan]) -> str:
    has_none = plans and not any(plan.launch.hicache for plan in plans)
    return "no server of this node has host pools (L2): none runs with HiCache" if has_none else "no pool found yet"


def _reserve(host: Host | None, plans: Sequence[Plan]) -> Line:
    """A start-up check of SGLang and no running budget, so nothing is held against it."""
    if host is not None and host.reserve_bytes is not None:
        detail = "the 10 GiB reserve, scaled to the demo's host"
        return Line("host.reserve", planned=host.reserve_bytes, source="simulated", detail=detail, status="ok")
    reserve = max((plan.node.reserve_bytes for plan in plans), default=None)
    detail = "kept free by SGLang's start-up check, per rank check and not per rank sum"
    return Line(
        "host.reserve", planned=reserve, source="computed", detail=detail, status="ok" if reserve else "unknown"
    )


def _hugepages(host: Host | None, source: Source, missing: str) -> Line:
    pages = host.hugepages if host else ()
    totals = [page.total_pages * page.page_size_bytes for page in pages if page.total_pages is not None]
    why = "this kernel tells of no huge pages" if host else missing
    return reading("host.hugepages", sum(totals) if totals else None, source=source, missing=why)


def _numa(node: NumaNode, pools: Mapping[int, float] | None) -> Iterator[Line]:
    source: Source = "simulated" if node.source == "simulated" else "measured"
    yield reading(
        f"numa.{node.node}.headroom",
        node_headroom_bytes(node),
        source=source,
        missing="the node's meminfo says nothing",
    )
    yield reading(
        f"numa.{node.node}.pools",
        None if pools is None else round(pools.get(node.node, 0.0)),
        source="simulated" if source == "simulated" else "inferred",
        missing="no pages sampled yet",
    )


def pool_bytes_by_node(
    pools: Sequence[Sequence[Line]], placements: Sequence[Sequence[Placement]]
) -> dict[int, float] | None:
    """Pool bytes on each node, from the share of sampled pages of every rank's pools; None where none was sampled.

    Both are by rank.
    """
    found: dict[int, float] | None = None
    for of_rank, sampled_pools in zip(pools, placements, strict=True):
        sampled = sum(placement.sampled_pages for placement in sampled_pools)
        if not sampled:
            continue
        found = {} if found is None else found
        mapped = sum(line.mapped_bytes or 0 for line in of_rank)
        for placement in sampled_pools:
            for node, pages in placement.pages_by_node:
                found[node] = found.get(node, 0.0) + mapped * pages / sampled
    return found


def _why(sample: Sample, source: str) -> str:
    state = next((state for state in sample.sources if state.name == source), None)
    if state is not None and state.state == "ok":
        return f"{source} was read and has nothing of it"
    return state.detail if state is not None and state.detail else f"{source} has not answered yet"
