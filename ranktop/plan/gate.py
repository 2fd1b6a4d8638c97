"""SGLang's host memory gate: what it checks, when it surely passes or fails, and the sum that it never checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ranktop.plan.plan import GIB, HostPlan, NodePlan
from ranktop.plan.profiles import Profile

RESERVE_BYTES = 10 * GIB

GateAnswer = Literal["passes surely", "depends on which rank allocates first", "fails surely"]


def gate_free_bytes(profile: Profile, available_bytes: int, cgroup_headroom_bytes: int | None) -> int:
    """What the gate takes for free memory: from 0.5.21 the lesser of MemAvailable and the cgroup's headroom."""
    if profile.gate_cgroup == "no" or cgroup_headroom_bytes is None:
        return available_bytes
    return min(available_bytes, cgroup_headroom_bytes)


def node_plan(profile: Profile, hosts: Sequence[HostPlan | None], launch_ranks: int) -> NodePlan:
    """Sums and gate bounds over this node's ranks.

    `launch_ranks` divides the gate from 0.5.19: the launch's ranks per node, whatever this node holds. Ranks may
    differ (pipeline stages, compact indexers): each bound takes the worst order in which they can check.
    """
    pools = [host for host in hosts if host is not None and host.allocated_bytes is not None]
    count = len(hosts)
    if not pools or len(pools) != count:
        return NodePlan(count, None, None, RESERVE_BYTES, None, None, None)
    primaries = [pool.primary_bytes or 0 for pool in pools]
    indexers = [pool.indexer_bytes or 0 for pool in pools]
    allocated = [pool.allocated_bytes or 0 for pool in pools]
    every, divisor = sum(allocated), launch_ranks if profile.gate_divides_by_ranks else 1
    # Worst for passing: a rank that checks after all others hold everything.
    fits = RESERVE_BYTES + max(
        every - own + max(primary * divisor, (primary + indexer * divisor) if indexer else 0)
        for primary, indexer, own in zip(primaries, indexers, allocated, strict=True)
    )
    # Best for passing: all check their primary at once; but an indexer is checked only after its rank's primary is
    # resident, so the rank that checks its indexer last sees every primary.
    fails_below = RESERVE_BYTES + max(primaries) * divisor
    if any(indexers):
        fails_below = max(fails_below, RESERVE_BYTES + sum(primaries) + min(indexers) * divisor)
    return NodePlan(
        count,
        combined_bytes=sum(pool.combined_bytes or 0 for pool in pools),
        allocated_bytes=every,
        reserve_bytes=RESERVE_BYTES,
        per_rank_gate_bytes=max(primary + indexer for primary, indexer in zip(primaries, indexers, strict=True))
        + RESERVE_BYTES,
        surely_fits_bytes=fits,
        surely_fails_below_bytes=fails_below,
    )


def answer(node: NodePlan, free_bytes: int) -> GateAnswer | None:
    """What the gate says with that much free before the first rank allocates; None when the sizes are not known."""
    if node.surely_fits_bytes is None or node.surely_fails_below_bytes is None:
        return None
    if free_bytes >= node.surely_fits_bytes:
        return "passes surely"
    if free_bytes < node.surely_fails_below_bytes:
        return "fails surely"
    return "depends on which rank allocates first"
