"""The sizes that follow from the stand-in's launch: the plan's, so that a healthy node differs from it by nothing."""

from __future__ import annotations

import functools

from msgspec import Struct

from ranktop.demo.launch import DEVICE_TOKENS, HICACHE_GB, VERSION, launch_flags
from ranktop.plan import compute_plan, parse_launch


class PoolSizes(Struct, frozen=True):
    """One rank's host pools and its bytes a token."""

    tokens: int
    primary_bytes: int
    indexer_bytes: int
    """What SGLang checks and logs."""
    indexer_allocated_bytes: int
    bytes_per_token: int
    device_bytes_per_token: int

    @property
    def allocated_bytes(self) -> int:
        return self.primary_bytes + self.indexer_allocated_bytes


@functools.cache
def pool_sizes(hicache_gb: float = HICACHE_GB) -> PoolSizes:
    """Sizes of every rank of the demo's launch with an L2 of `hicache_gb` a rank."""
    request = parse_launch(launch_flags(port=0, hicache_gb=hicache_gb))
    rank = compute_plan(request, version=VERSION, device_tokens=DEVICE_TOKENS).ranks[0]
    host = rank.host
    if host is None or host.tokens is None or host.primary_bytes is None:
        raise ValueError(f"no host pools in the plan of {request}")
    if host.indexer_bytes is None or host.indexer_allocated_bytes is None:
        raise ValueError(f"no indexer pool in the plan of {request}")
    return PoolSizes(
        tokens=host.tokens,
        primary_bytes=host.primary_bytes,
        indexer_bytes=host.indexer_bytes,
        indexer_allocated_bytes=host.indexer_allocated_bytes,
        bytes_per_token=host.bytes_per_token + host.index_bytes_per_token,
        device_bytes_per_token=rank.device.bytes_per_token,
    )
