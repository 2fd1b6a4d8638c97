"""Solves for the largest host pool that fits a machine: what to type when the asked size does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ranktop.plan.hostrules import Allowance, host_findings
from ranktop.plan.launch import LaunchRequest
from ranktop.plan.machine import Machine, needed_bytes
from ranktop.plan.plan import GB, Plan

_BLOCKING = frozenset({"PLAN-HOST-OVERCOMMIT", "PLAN-HOST-GATE", "PLAN-NODE-OVERCOMMIT"})


class Fit(Struct, frozen=True):
    """The answer: `flag` to type, or None with the reason."""

    flag: str | None
    reason: str
    hicache_size_gb: float | None = None
    freed_bytes: int | None = None
    lost_tokens: int | None = None


def does_not_fit(plan: Plan, machine: Machine, allowance: Allowance, request: LaunchRequest) -> bool:
    """Whether a blocking host rule fires."""
    return any(finding.code in _BLOCKING for finding in host_findings(plan, machine, allowance, request))


def fit_now(
    plan: Plan,
    machine: Machine,
    allowance: Allowance,
    request: LaunchRequest,
    compute: Callable[[LaunchRequest], Plan],
) -> Fit | None:
    """The largest `--hicache-size` that fits host, cgroup and every NUMA node with host tokens > device tokens.

    None when the asked launch fits. `compute` plans a changed request. Sizes are whole GB, hundredths below 2 GB.
    """
    needed = needed_bytes(plan)
    if needed is None or not plan.ranks or not does_not_fit(plan, machine, allowance, request):
        return None
    asked_gb = _size_gb(plan)
    step = 1.0 if asked_gb >= 2 else 0.01

    def planned(steps: int) -> tuple[LaunchRequest, Plan]:
        changed = _with_size(request, steps * step)
        return changed, compute(changed)

    # Bytes never fall when the size grows, so the steps that fit are a prefix.
    low, high = 0, int(asked_gb / step)
    while low < high:
        middle = (low + high + 1) // 2
        changed, candidate = planned(middle)
        if does_not_fit(candidate, machine, allowance, changed):
            high = middle - 1
        else:
            low = middle
    if low == 0:
        return Fit(None, f"no size from {step:g} GB a rank fits here: leave HiCache off, or free host memory")
    _, fitting = planned(low)
    return _answer(plan, fitting, low * step, needed)


def _answer(plan: Plan, fitting: Plan, size_gb: float, needed: int) -> Fit:
    host, before = fitting.ranks[0].host, plan.ranks[0].host
    if host is None or before is None or host.tokens is None or before.tokens is None:
        return Fit(None, "the size is not known")
    device_tokens = fitting.ranks[0].device.pool_tokens
    if device_tokens is not None and host.tokens <= device_tokens:
        return Fit(
            None,
            f"the largest size that fits is {size_gb:g} GB a rank: {host.tokens:,} tokens, not more than L1's "
            f"{device_tokens:,}; leave HiCache off, or free host memory",
        )
    after = needed_bytes(fitting) or 0
    freed, lost = needed - after, before.tokens - host.tokens
    return Fit(
        f"--hicache-size {size_gb:g}",
        f"fits: {host.tokens:,} tokens a rank; frees {freed / GB:.2f} GB on this node, loses {lost:,} tokens a rank",
        size_gb,
        freed,
        lost,
    )


def _size_gb(plan: Plan) -> float:
    if plan.launch.hicache_size_gb:
        return plan.launch.hicache_size_gb
    primary = max(rank.host.primary_bytes or 0 for rank in plan.ranks if rank.host is not None)
    return primary / GB


def _with_size(request: LaunchRequest, size_gb: float) -> LaunchRequest:
    flags: dict[str, Any] = {name: value for name, value in request.flags.items() if name != "hicache_ratio"}
    size = int(size_gb) if size_gb == int(size_gb) else round(size_gb, 2)
    return replace(request, flags={**flags, "hicache_size": size})
