"""Words that findings and the screen share."""

from __future__ import annotations

POOL_NAMES = {
    "host.primary": "primary pool",
    "host.indexer": "indexer pool",
    "host.draft": "draft pool",
    "host.draft_indexer": "draft indexer pool",
}
"""Host pools by their line."""


def counted(number: int, one: str, many: str = "") -> str:
    """`1 rank`, `8 ranks`; `many` where it is not `one` with an s."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
