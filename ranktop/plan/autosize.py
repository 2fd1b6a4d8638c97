"""The automatic host pool size of 0.5.21 and later (`hicache_auto_size.py`): only without a ratio and a size."""

from __future__ import annotations

from ranktop.plan.gate import RESERVE_BYTES

DEFAULT_FRACTION = 0.8
SAFETY = 0.95


def auto_ratio(
    default: float, available_bytes: int, ranks: int, device_bytes: int, fraction: float | None = None
) -> float:
    """The ratio to the device pool: the default, or what this rank's share of free host memory allows.

    `available_bytes` is the lesser of MemAvailable and the cgroup's headroom; `device_bytes` the rank's L1 pool.
    """
    share = max(available_bytes - RESERVE_BYTES, 0) // ranks
    budget = share * (DEFAULT_FRACTION if fraction is None else fraction)
    return min(default, budget * SAFETY / device_bytes)
