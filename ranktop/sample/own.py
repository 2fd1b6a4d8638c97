"""What ranktop itself costs. No part of a sample: it is about the one who watches, not about the node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Asked(NamedTuple):
    """What one address was asked over HTTP since the start. `seconds`: until its answers were complete, or given up."""

    requests: int = 0
    answer_bytes: int = 0
    seconds: float = 0.0


class OwnUse(NamedTuple):
    """Counted since the start of this process; `asked` by `HOST:PORT`."""

    at_monotonic_seconds: float
    cpu_seconds: float
    """User and system time of all threads, and of children that have ended."""
    rss_bytes: int | None
    page_walks: int
    """Opens of a file of /proc whose reading walks a process's pages (smaps, smaps_rollup, numa_maps, pagemap)."""
    asked: Mapping[str, Asked]
