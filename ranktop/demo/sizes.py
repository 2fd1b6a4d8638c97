"""The sizes that follow from the stand-in's launch: the plan's, so that a healthy node differs from it by nothing."""

from __future__ import annotations

import functools

from msgspec import Struct

from ranktop.demo.launch import DEVICE_TOKENS, REAL_HICACHE_GB, Launch
from ranktop.plan import Plan, compute_plan, parse_launch


class PoolSizes(Struct, frozen=True):
    """One rank's host pools and its bytes a token; no tokens without L2."""

    tokens: int
    primary_bytes: int
    indexer_bytes: int
    """What SGLang checks and logs."""
    indexer_allocated_bytes: int
    bytes_per_token: int
    device_bytes_per_token: int
    layout: str
    target_layers: int
    draft_layers: int
    """Layers of the draft packed into the same pools."""

    @property
    def allocated_bytes(self) -> int:
        return self.primary_bytes + self.indexer_allocated_bytes


@functools.cache
def demo_plan(launch: Launch) -> Plan:
    """The plan of a scenario's launch."""
    return compute_plan(parse_launch(launch.flags(port=0)), version=launch.version, device_tokens=DEVICE_TOKENS)


def pool_sizes(launch: Launch | None = None) -> PoolSizes:
    """Sizes of every rank of a launch; the healthy node's without one. All ranks of a launch are alike here."""
    launch = launch or Launch()
    plan = demo_plan(launch)
    rank = plan.ranks[0]
    if launch.hicache_gb is None:
        return PoolSizes(0, 0, 0, 0, 0, rank.device.bytes_per_token, "", plan.model.layers, 0)
    host = rank.host
    if host is None or host.tokens is None or host.primary_bytes is None:
        raise ValueError(f"no host pools in the plan of {launch}")
    if host.indexer_bytes is None or host.indexer_allocated_bytes is None:
        raise ValueError(f"no indexer pool in the plan of {launch}")
    drafts = plan.model.mtp_layers if plan.launch.speculative else 0
    return PoolSizes(
        tokens=host.tokens,
        primary_bytes=host.primary_bytes,
        indexer_bytes=host.indexer_bytes,
        indexer_allocated_bytes=host.indexer_allocated_bytes,
        bytes_per_token=host.bytes_per_token + host.index_bytes_per_token,
        device_bytes_per_token=rank.device.bytes_per_token,
        layout=plan.launch.mem_layout,
        target_layers=host.layers - drafts,
        draft_layers=drafts,
    )


@functools.cache
def scale() -> float:
    """How much smaller the demo's host is: its pools over those of a launch with 120 GB a rank."""
    return pool_sizes().allocated_bytes / pool_sizes(Launch(hicache_gb=REAL_HICACHE_GB)).allocated_bytes
