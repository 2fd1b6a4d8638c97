"""Are the host pools pinned? The kernel knows only the node's sum of FOLL_PIN pages, so this is never proof per rank.

Source: facts host-memory section a; `nr_foll_pin_acquired` - `nr_foll_pin_released` of /proc/vmstat (kernel >= 5.7).
VmLck and VmPin say nothing of CUDA pins: the NVIDIA driver charges neither.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ranktop.sample import Host

PinVerdict = Literal["corroborated", "contradicted", "unknown"]

CONTRADICTED_BELOW_RATIO = 0.9


class Pins(NamedTuple):
    """The node's outstanding pins held against the matched pools. `reason` says why, in one line."""

    verdict: PinVerdict
    outstanding_bytes: int | None
    reason: str


def judge_pins(host: Host | None, matched_bytes: int, *, has_driver: bool, loading: bool) -> Pins:
    """Whether outstanding pins cover `matched_bytes`, the pools found on this node."""
    if host is None or host.foll_pin_acquired_pages is None or host.foll_pin_released_pages is None:
        return Pins("unknown", None, "this kernel does not count pins (nr_foll_pin_*, since 5.7)")
    net = (host.foll_pin_acquired_pages - host.foll_pin_released_pages) * host.page_size_bytes
    if not has_driver:
        return Pins("unknown", net, "no NVIDIA driver here that could pin")
    if matched_bytes == 0:
        return Pins("unknown", net, "no pool found that could be pinned")
    if loading:
        return Pins("unknown", net, "still loading: pools are registered one by one")
    if net <= 0:
        return Pins("unknown", net, "this driver's pins do not count in nr_foll_pin")
    if net < matched_bytes * CONTRADICTED_BELOW_RATIO:
        return Pins("contradicted", net, f"{net / 1e9:.2f} GB pinned on this node, {matched_bytes / 1e9:.2f} GB mapped")
    return Pins(
        "corroborated", net, f"{net / 1e9:.2f} GB pinned on this node cover {matched_bytes / 1e9:.2f} GB mapped"
    )
