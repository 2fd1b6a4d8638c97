"""Negative controls for a launch: one changed thing each, and what this release must then be seen to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ranktop.plan.arguments import flag_name
from ranktop.plan.launch import LaunchRequest, render_launch
from ranktop.plan.plan import Plan, PlanError


class Control(Struct, frozen=True):
    """One control: what to change, the launch to paste, and the observation that proves the guard."""

    change: str
    launch: str
    expected: str


_LAYER_SPLIT: tuple[dict[str, Any], ...] = (
    {"disaggregation_mode": "null"},
    {"disaggregation_mode": "decode", "enable_prefill_cp": False},
    {"cp_strategy": "zigzag"},
    {"disaggregation_transfer_backend": "nixl"},
    {"disaggregation_transfer_backend": "mori"},
    {"pp_size": 2},
    {"tp_size": 1, "attn_cp_size": 1},
)
_HICACHE: tuple[dict[str, Any], ...] = (
    {"disable_radix_cache": True},
    {"dcp_size": 2, "hicache_storage_backend": "file"},
    {"hicache_io_backend": "direct", "hicache_mem_layout": "page_first"},
    {"hicache_io_backend": "kernel", "hicache_mem_layout": "page_first_direct"},
    {"hicache_storage_backend": "mooncake", "hicache_mem_layout": "layer_first"},
    {"enable_lmcache": True},
    {"enable_hierarchical_cache": False},
)


def controls(request: LaunchRequest, plan: Plan, compute: Callable[[LaunchRequest], Plan]) -> tuple[Control, ...]:
    """The audits' negative controls for this launch: LayerSplit's when it is asked for, HiCache's when it is on."""
    found: list[Control] = []
    if request.flags.get("enable_dsa_cache_layer_split"):
        found += [_control(request, change, compute) for change in _LAYER_SPLIT]
        found.append(Control("a tiny model without DSA", "", "Startup rejection: only supported for DSA models."))
    if plan.launch.hicache:
        found += [_control(request, change, compute) for change in _HICACHE]
    return tuple(found)


def _control(request: LaunchRequest, change: dict[str, Any], compute: Callable[[LaunchRequest], Plan]) -> Control:
    flags = {name: value for name, value in {**request.flags, **change}.items() if value is not False}
    if flags.get("disaggregation_mode") == "null":
        del flags["disaggregation_mode"]
    changed = replace(request, flags=flags, resolved=False)
    try:
        expected = _expected(compute(changed))
    except PlanError as problem:
        expected = f"Startup rejection: {problem}"
    return Control(", ".join(_spelt(*item) for item in change.items()), render_launch(changed), expected)


def _spelt(field: str, value: Any) -> str:
    if value is True:
        return flag_name(field)
    return f"without {flag_name(field)}" if value is False else f"{flag_name(field)} {value}"


def _expected(plan: Plan) -> str:
    """What must be seen, worst first: a rejection, a silent no-op, a rewriting, or another allocation."""
    for row in plan.eligibility:
        if row.verdict == "rejected":
            return f"Startup rejection: {row.message}"
    for row in plan.eligibility:
        if row.verdict in ("ignored", "untested"):
            return f"The server may start: {row.message}"
    for row in plan.eligibility:
        if row.verdict == "rewritten":
            return f"Starts; the log says that {row.rule} becomes {row.message}"
    if not plan.launch.hicache:
        return "Starts with no host pool: no `host memory` line in the log, nothing in L2's gauges"
    return "Starts"
