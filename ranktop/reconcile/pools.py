"""Which mapping of a rank is which planned host pool (contracts.md, "Planned against seen, for host pools")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ranktop.sample import Mapping


class ExpectedPool(NamedTuple):
    """A pool that the plan expects, in the order in which SGLang allocates."""

    line: str
    planned_bytes: int


class PoolMatch(NamedTuple):
    """What was found for one expected pool. An exact match has `seen_bytes == planned_bytes`."""

    line: str
    planned_bytes: int
    seen_bytes: int | None
    mapping: Mapping | None
    exact: bool


def round_up(size_bytes: int, page_bytes: int) -> int:
    """What the kernel makes of a size: whole pages."""
    return -(-size_bytes // page_bytes) * page_bytes


def match_pools(expected: Sequence[ExpectedPool], mappings: Sequence[Mapping]) -> tuple[PoolMatch, ...]:
    """Exact matches of the page-rounded size first, over all pools; then the nearest that could be meant."""
    free = [mapping for mapping in mappings if mapping.resident is not False]
    found: dict[str, PoolMatch] = {}
    for pool in expected:
        exact = next((m for m in free if m.size_bytes == round_up(pool.planned_bytes, m.page_size_bytes)), None)
        if exact is not None:
            free.remove(exact)
            found[pool.line] = PoolMatch(*pool, pool.planned_bytes, exact, True)
    for pool in expected:
        if pool.line not in found:
            near = _nearest(pool, free)
            if near is not None:
                free.remove(near)
            found[pool.line] = PoolMatch(*pool, near.size_bytes if near else None, near, False)
    return tuple(found[pool.line] for pool in expected)


def _nearest(pool: ExpectedPool, free: Sequence[Mapping]) -> Mapping | None:
    """The largest resident mapping between half and twice the plan; powers of two last, as torch rounds to them."""
    low, high = pool.planned_bytes / 2, pool.planned_bytes * 2
    candidates = [mapping for mapping in free if low <= mapping.size_bytes <= high]
    return max(candidates, key=lambda m: (m.size_bytes.bit_count() != 1, m.size_bytes), default=None)
