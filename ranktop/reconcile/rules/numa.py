"""Pools away from their GPU, and binding that did not happen: NUMA-REMOTE, NUMA-NO-PERMISSION."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from ranktop.finding import Finding, Severity
from ranktop.reconcile.headrooms import bound_node, cpu_numbers
from ranktop.reconcile.lines.placement import near_nodes
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.verdict import RankVerdict
from ranktop.reconcile.wording import POOL_NAMES, counted
from ranktop.sample import Mapping as PoolMapping
from ranktop.sample import NumaNode, Placement, share_interval_percent

_LEAST_PEERS = 3


class Far(NamedTuple):
    """The pool of a rank with the largest share of pages that are far from its GPU."""

    pool: str
    far_pages: int
    sampled_pages: int
    node: int
    """Where most of the far pages are."""
    source: str

    @property
    def percent(self) -> float:
        return 100 * self.far_pages / self.sampled_pages


def numa_remote(context: Context) -> Iterator[Finding]:
    """Far by distance, so that another part of the same socket is near. Worse once the rank copies slower for it."""
    nodes = context.sample.numa or ()
    if len(nodes) < 2 or not context.sample.placements:
        return
    distances = {node.node: dict(node.distances) for node in nodes}
    for rank in context.ranks:
        placements = context.sample.placements.get(rank.pid, ()) if rank.pid is not None else ()
        if rank.numa is None or rank.numa not in distances or not _is_anywhere_else(placements, rank.numa):
            continue
        far = _worst(rank, placements, context.sample.mappings.get(rank.pid or 0, ()), distances)
        if far is not None and far.percent > context.thresholds.numa_far_percent:
            yield _remote(context, rank, far)


def numa_unknown(context: Context) -> Iterator[Finding]:
    """Where pages lie cannot be read here, or a rank was not bound although SGLang binds by default."""
    nodes = [node for node in context.sample.numa or () if node.total_bytes]
    if context.sample.numa is not None and len(nodes) < 2:
        return
    for state in context.sample.sources:
        if state.name == "placement" and state.state == "error" and state.code == "no_permission":
            yield Finding(
                "NUMA-NO-PERMISSION",
                "info",
                f"where the pools lie is unknown: {state.detail}",
                evidence={"answer": state.code},
                sources={"answer": "measured"},
                advice="run ranktop as the ranks' user or as root with CAP_SYS_PTRACE; `ranktop doctor` says which",
            )
    since = context.since(context.thresholds.event_seconds)
    refused = {event.server: event for event in context.incidents.of("numa_failed", since_unix_seconds=since)}
    for server in context.servers:
        event = refused.get(server.id)
        loose = _not_bound(context, server.id, nodes)
        if event is None and not loose:
            continue
        why = f": {event.text[:80]}" if event is not None else ""
        yield Finding(
            "NUMA-NO-PERMISSION",
            "info",
            f"{counted(len(loose), 'rank')} may run on every CPU of the node, not bound by SGLang{why}"
            if loose
            else f"binding was refused{why}",
            scope="server",
            server=server.id,
            evidence={"unbound_ranks": len(loose), "refused": event is not None},
            sources={"unbound_ranks": "measured", "refused": "logged" if event is not None else "measured"},
            advice="a container needs CAP_SYS_NICE for set_mempolicy. Check first that each NUMA node has room for its "
            "ranks' pools (`ranktop preflight`): membind is strict. It takes effect at the next planned restart",
        )


def _is_anywhere_else(placements: Sequence[Placement], node: int) -> bool:
    """Most ranks' pages are all on their GPU's node, and need no further look."""
    return any(pages and where != node for placement in placements for where, pages in placement.pages_by_node)


def _worst(
    rank: RankVerdict,
    placements: Sequence[Placement],
    mappings: Sequence[PoolMapping],
    distances: Mapping[int, Mapping[int, int]],
) -> Far | None:
    assert rank.numa is not None
    near = near_nodes(rank.numa, distances)
    pools = {line.mapped_bytes: line.line for line in rank.pools if line.mapped_bytes}
    sizes = {mapping.start_address: mapping.size_bytes for mapping in mappings}
    found: list[Far] = []
    for placement in placements:
        # A start address of 0 stands for all pools of the rank (simulated).
        line = pools.get(sizes.get(placement.start_address, -1)) if placement.start_address else ""
        sampled = placement.sampled_pages - placement.absent_pages
        if line is None or sampled <= 0:
            continue
        far = [(pages, node) for node, pages in placement.pages_by_node if node not in near]
        if far:
            name = POOL_NAMES.get(line, "host pools")
            found.append(Far(name, sum(pages for pages, _ in far), sampled, max(far)[1], placement.source))
    return max(found, key=lambda far: far.percent, default=None)


def _remote(context: Context, rank: RankVerdict, far: Far) -> Finding:
    low, high = share_interval_percent(far.far_pages, far.sampled_pages)
    copies = _copy_share(context, rank)
    lags = copies is not None and copies < context.thresholds.copy_share
    severity: Severity = "breach" if lags else "warn"
    return Finding(
        "NUMA-REMOTE",
        severity,
        f"{far.percent:.0f} % of the {far.pool} {'are' if far.pool.endswith('s') else 'is'} on node {far.node}, its "
        f"GPU is on node {rank.numa} ({far.sampled_pages} pages sampled, {low:.0f} to {high:.0f} %)"
        + (f"; it copies at {100 * (copies or 0):.0f} % of its peers' bandwidth" if lags else ""),
        scope="rank",
        server=rank.server,
        rank=rank.rank,
        evidence={
            "far_percent": round(far.percent, 1),
            "far_percent_low": round(low, 1),
            "far_percent_high": round(high, 1),
            "sampled_pages": far.sampled_pages,
            "far_node": far.node,
            "gpu_node": rank.numa,
            "copy_ratio": round(copies, 3) if copies is not None else None,
        },
        sources=dict.fromkeys(("far_percent", "sampled_pages", "far_node", "gpu_node"), far.source)
        | {"far_percent_low": "inferred", "far_percent_high": "inferred", "copy_ratio": "inferred"},
        advice="pinned pages never move, so only a relaunch helps: bind the rank (SGLANG_NUMA_BIND_V2=1, in a "
        "container with CAP_SYS_NICE, or --numa-node), after `ranktop preflight` has shown that each node has "
        "the headroom",
    )


def _copy_share(context: Context, rank: RankVerdict) -> float | None:
    """This rank's copy bandwidth over the median of its peers; None where ranks do not tell their own."""
    rates = {
        other.rank: float(line.seen)
        for other in context.ranks_of(rank.server)
        if (line := other.line("rate.copy")).seen and not line.group
    }
    own = rates.pop(rank.rank, None)
    if own is None or len(rates) < _LEAST_PEERS:
        return None
    return own / median(rates.values())


def _not_bound(context: Context, server: str, nodes: Sequence[NumaNode]) -> list[str]:
    """Ranks that may use the CPUs of every node; a narrower cpuset is somebody's decision."""
    every = [cpu_numbers(node.cpus) for node in nodes if node.cpus]
    if len(every) < 2 or any(node.source == "simulated" for node in nodes):
        return []
    ranks = context.sample.processes.ranks if context.sample.processes else ()
    return [
        str(rank.tag)
        for rank in ranks
        if rank.server == server
        and rank.cpus_allowed
        and bound_node(rank, nodes) is None
        and all(cpus & cpu_numbers(rank.cpus_allowed) for cpus in every)
    ]
