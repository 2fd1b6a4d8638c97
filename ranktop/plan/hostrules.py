"""PLAN findings that need a machine. Pure: (plan, machine) -> findings; a missing input keeps a rule silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from ranktop.finding import Finding
from ranktop.plan.gate import answer, gate_free_bytes
from ranktop.plan.launch import LaunchRequest
from ranktop.plan.machine import (
    OTHER_BYTES_PER_RANK,
    UNPIN_SECONDS_PER_BYTE,
    Machine,
    needed_bytes,
    node_of_ranks,
    pool_bytes,
)
from ranktop.plan.plan import GB, GIB, Plan
from ranktop.plan.profiles import Profile, profile_for

HUGEPAGE_BYTES = {"2MB": 2 << 20, "1GB": 1 << 30}


class Allowance(Struct, frozen=True):
    """What must fit beside the pools, in bytes, and where the number comes from."""

    other_bytes: int
    margin_bytes: int
    other_source: str = "assumed"

    @property
    def total_bytes(self) -> int:
        """Both."""
        return self.other_bytes + self.margin_bytes


def assumed_allowance(plan: Plan, margin_bytes: int) -> Allowance:
    """The usual memory of the ranks beside their pools."""
    return Allowance(OTHER_BYTES_PER_RANK * len(plan.ranks), margin_bytes)


def host_findings(
    plan: Plan, machine: Machine, allowance: Allowance, request: LaunchRequest, *, preflight: bool = False
) -> tuple[Finding, ...]:
    """All host rules. `preflight` adds those that only make sense on the machine of the launch."""
    hugepage = HUGEPAGE_BYTES.get(request.environment.get("SGLANG_HUGEPAGE_SIZE", ""))
    profile = profile_for(plan.sglang.profile)[0]
    needed = needed_bytes(plan, hugepage)
    found: list[Finding] = []
    if needed is not None:
        found += _overcommit(plan, machine, allowance, needed, hugepage)
        found += _gate(plan, machine, profile)
        found += _node_overcommit(plan, machine, allowance, hugepage)
        found += _overlap(machine, allowance, needed)
        found += _hugepages(plan, machine, allowance, needed, hugepage)
        if preflight:
            found += _half_of_ram(machine, needed)
    found += _memlock(plan, machine, request)
    if preflight:
        found += _not_first_pilot(plan)
    return tuple(found)


def _overcommit(
    plan: Plan, machine: Machine, allowance: Allowance, needed: int, hugepage: int | None
) -> Iterable[Finding]:
    limit = machine.limit_bytes
    total = needed + allowance.total_bytes
    if limit is not None and hugepage:
        # Reserved huge pages are in no MemAvailable and in no memory.max.
        limit += machine.hugetlb_free_bytes or 0
    if limit is None or total <= limit:
        return
    yield Finding(
        "PLAN-HOST-OVERCOMMIT",
        "critical",
        f"{multiplication(plan, hugepage)} = {needed / GB:.2f} GB of pools + {allowance.other_bytes / GB:.2f} GB other "
        f"({allowance.other_source}) + {allowance.margin_bytes / GB:.2f} GB margin = {total / GB:.2f} GB, "
        f"{limit / GB:.2f} GB may be used: {(total - limit) / GB:.2f} GB too much. SGLang's check sees one rank at a "
        "time and may pass; the kernel kills later.",
        evidence={
            "ranks": len(plan.ranks),
            "needed_bytes": needed,
            "other_bytes": allowance.other_bytes,
            "margin_bytes": allowance.margin_bytes,
            "limit_bytes": limit,
            "missing_bytes": total - limit,
        },
        sources={"needed_bytes": "computed", "other_bytes": allowance.other_source, "limit_bytes": _source(machine)},
        advice="Lower --hicache-size to what fits (see the fit line), or use fewer ranks on this node.",
    )


def multiplication(plan: Plan, hugepage: int | None = None) -> str:
    """`8 ranks x 144.15 GB`, or the sum of groups when ranks differ."""
    sizes = Counter(pool_bytes(rank.host, hugepage) or 0 for rank in plan.ranks if rank.host is not None)
    return " + ".join(f"{count} rank{'s' * (count > 1)} x {size / GB:.2f} GB" for size, count in sizes.items())


def _source(machine: Machine) -> str:
    return "measured" if machine.is_this_host else "given"


def _gate(plan: Plan, machine: Machine, profile: Profile) -> Iterable[Finding]:
    if machine.available_bytes is None:
        return
    strict = profile.gate_cgroup == "page cache counts as used"
    cgroup = machine.cgroup_headroom_strict_bytes if strict else machine.cgroup_headroom_bytes
    free = gate_free_bytes(profile, machine.available_bytes, cgroup) + machine.credited_bytes
    says = answer(plan.node, free)
    fits, fails = plan.node.surely_fits_bytes, plan.node.surely_fails_below_bytes
    if says == "passes surely" or fits is None or fails is None:
        return
    surely = says == "fails surely"
    yield Finding(
        "PLAN-HOST-GATE",
        "breach" if surely else "warn",
        f"SGLang {plan.sglang.profile}'s own memory check {says}: {free / GIB:.2f} GiB free; it passes surely from "
        f"{fits / GIB:.2f} GiB and fails surely below {fails / GIB:.2f} GiB (one pool and one rank at a time).",
        evidence={"free_bytes": free, "surely_fits_bytes": fits, "surely_fails_below_bytes": fails},
        sources={"free_bytes": _source(machine), "surely_fits_bytes": "computed"},
        advice="Free host memory first, or lower --hicache-size to what fits.",
    )


def _node_overcommit(plan: Plan, machine: Machine, allowance: Allowance, hugepage: int | None) -> Iterable[Finding]:
    bound = node_of_ranks(plan, machine)
    share = allowance.total_bytes // max(len(plan.ranks), 1)
    for node in machine.nodes:
        ranks = [rank for rank, home in zip(plan.ranks, bound, strict=True) if home == node.node]
        pools = sum(pool_bytes(rank.host, hugepage) or 0 for rank in ranks if rank.host is not None)
        credit = machine.credited_bytes * len(ranks) // max(len(plan.ranks), 1)
        total, headroom = pools + share * len(ranks), node.headroom_bytes + credit
        headroom += node.hugepages_free_bytes if hugepage else 0
        if not ranks or total <= headroom:
            continue
        yield Finding(
            "PLAN-NODE-OVERCOMMIT",
            "critical",
            f"NUMA node {node.node}: the memory of {len(ranks)} of {len(plan.ranks)} ranks binds to it: "
            f"{total / GB:.2f} GB, {headroom / GB:.2f} GB fit; a strict membind fails with memory free elsewhere.",
            ranks=tuple(rank.rank for rank in ranks),
            evidence={"node": node.node, "needed_bytes": total, "headroom_bytes": headroom},
            sources={"needed_bytes": "computed", "headroom_bytes": _source(machine)},
            advice="Spread the ranks' GPUs over the nodes, lower --hicache-size, or switch binding off "
            "(SGLANG_NUMA_BIND_V2=0) and accept remote pages.",
        )


def _half_of_ram(machine: Machine, needed: int) -> Iterable[Finding]:
    if machine.total_bytes and 2 * needed > machine.total_bytes:
        yield Finding(
            "PLAN-HALF-OF-RAM",
            "info",
            f"the pools take {100 * needed / machine.total_bytes:.0f} % of this host's memory: {needed / GIB:.1f} of "
            f"{machine.total_bytes / GIB:.1f} GiB",
            evidence={"needed_bytes": needed, "total_bytes": machine.total_bytes},
            sources={"needed_bytes": "computed", "total_bytes": "measured"},
            advice="tmpfs and /dev/shm default to half of memory as well: leave room for them.",
        )


def _overlap(machine: Machine, allowance: Allowance, needed: int) -> Iterable[Finding]:
    limit = machine.limit_bytes
    if limit is None or not machine.live_pool_bytes:
        return
    without_credit = limit - machine.credited_bytes
    if needed + allowance.total_bytes <= without_credit:
        return
    seconds = machine.live_pool_bytes * UNPIN_SECONDS_PER_BYTE
    yield Finding(
        "PLAN-OVERLAP",
        "warn",
        f"pools of {machine.live_pool_bytes / GB:.2f} GB are held here now: old and new together do not fit. Unpinning "
        f"them takes up to {seconds:.0f} s after the old server is told to stop.",
        evidence={"live_pool_bytes": machine.live_pool_bytes, "unpin_seconds": round(seconds, 1)},
        sources={"live_pool_bytes": "measured", "unpin_seconds": "inferred"},
        advice="Stop the old server, wait until its ranks are gone from the process list, then launch.",
    )


def _hugepages(
    plan: Plan, machine: Machine, allowance: Allowance, needed: int, hugepage: int | None
) -> Iterable[Finding]:
    free, available = machine.hugetlb_free_bytes, machine.limit_bytes
    if free is None or available is None:
        return
    evidence = {"available_bytes": available, "hugetlb_free_bytes": free, "needed_bytes": needed}
    numbers = (
        f"{available / GIB:.1f} GiB available, {free / GIB:.1f} GiB of huge pages free, {needed / GIB:.1f} GiB needed"
    )
    sources = {"available_bytes": _source(machine), "hugetlb_free_bytes": _source(machine), "needed_bytes": "computed"}
    if hugepage is None:
        if free and available < needed + allowance.total_bytes <= available + free:
            yield Finding(
                "PLAN-HUGEPAGES",
                "warn",
                f"reserved huge pages keep the pools out: {numbers}",
                evidence=evidence,
                sources=sources,
                advice="Release the reservation, or set SGLANG_HUGEPAGE_SIZE so that the pools use it.",
            )
        return
    short = _nodes_short_of_hugepages(plan, machine, hugepage)
    refused = answer(plan.node, available) != "passes surely"
    if needed > free or short or refused:
        where = f"; node {', '.join(map(str, short))} has too few" if short else ""
        why = "SGLang's check does not count them and may refuse" if refused else "the pools fall back to small pages"
        yield Finding(
            "PLAN-HUGEPAGES",
            "warn",
            f"huge pages: {numbers}{where}; {why}",
            evidence={**evidence, "nodes": list(short)},
            sources=sources,
            advice="Reserve enough huge pages on every node for its ranks and leave the gate's amount available.",
        )


def _nodes_short_of_hugepages(plan: Plan, machine: Machine, hugepage: int) -> tuple[int, ...]:
    bound = node_of_ranks(plan, machine)
    short: list[int] = []
    for node in machine.nodes:
        hosts = [rank.host for rank, home in zip(plan.ranks, bound, strict=True) if home == node.node]
        if sum(pool_bytes(host, hugepage) or 0 for host in hosts if host is not None) > node.hugepages_free_bytes:
            short.append(node.node)
    return tuple(short)


def _memlock(plan: Plan, machine: Machine, request: LaunchRequest) -> Iterable[Finding]:
    tcp = request.flags.get("disaggregation_transfer_backend") == "mooncake_tcp"
    rdma = (plan.launch.role != "unified" and not tcp) or plan.launch.storage_backend == "mooncake"
    if machine.memlock_bytes is None or not rdma:
        return
    yield Finding(
        "PLAN-MEMLOCK",
        "warn",
        f"RDMA registers memory under RLIMIT_MEMLOCK, which is {machine.memlock_bytes / GIB:.2f} GiB here",
        evidence={"memlock_bytes": machine.memlock_bytes},
        sources={"memlock_bytes": _source(machine)},
        advice="Raise the memlock limit of the container or unit for RDMA; CUDA pins do not count under it.",
    )


def _not_first_pilot(plan: Plan) -> Iterable[Finding]:
    launch = plan.launch
    extra = [
        name
        for name, on in (("L3 storage", launch.storage_backend), ("MTP", launch.speculative))
        if launch.hicache and on
    ]
    if extra:
        yield Finding(
            "PLAN-NOT-FIRST-PILOT",
            "info",
            f"{' and '.join(extra)} together with L2: the audit's order is L2 alone, then L3, then MTP",
            scope="server",
            evidence={"together": extra},
            advice="If L2 alone has passed on this image, go on; else a failure has more than one suspect.",
        )
