"""What a rank maps that could be a host pool, and where its pages lie."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from msgspec import Struct

from ranktop.sample.fields import gauge, label

MappingKind = Literal["shared_anon", "hugetlb", "memfd", "private_thp"]


class Mapping(Struct, frozen=True, array_like=True, gc=False):
    """One line of `/proc/PID/maps` that can hold a host pool (facts: host-memory, section a)."""

    pid: Annotated[int, label("pid", 8, "owner")]
    start_address: Annotated[int, label("address", 16, "first byte")]
    size_bytes: Annotated[int, gauge("size", "bytes", 9, "size of the mapping")]
    kind: Annotated[MappingKind, label("kind", 11, "how the allocator made it")]
    page_size_bytes: Annotated[int, label("page", 7, "what the kernel rounded the size to")]
    inode: Annotated[int | None, label("inode", 10, "tells shared mappings of several processes apart")] = None
    device: str | None = None
    resident: Annotated[bool | None, label("res", 3, "False: inherited or not yet faulted in")] = None


class Placement(Struct, frozen=True, array_like=True, gc=False):
    """Where a sample of one mapping's pages lies (`move_pages` query, no page walk)."""

    pid: Annotated[int, label("pid", 8, "owner")]
    start_address: Annotated[int, label("address", 16, "first byte of the mapping")]
    sampled_pages: Annotated[int, gauge("sampled", "pages", 7, "pages asked about")]
    pages_by_node: tuple[tuple[int, int], ...] = ()
    absent_pages: Annotated[int, gauge("absent", "pages", 7, "not present")] = 0
    at_unix_seconds: Annotated[float | None, gauge("at", "seconds", 12, "when the sample was taken")] = None
    source: str = "measured"


def share_interval_percent(hits: int, sampled: int) -> tuple[float, float]:
    """The 95 % interval of a share of which a random sample of pages was seen (Wilson's score interval), in percent.

    No pages tell nothing: 0 to 100.
    """
    if sampled <= 0:
        return 0.0, 100.0
    z = 1.96
    share = hits / sampled
    middle = share + z * z / (2 * sampled)
    half = z * math.sqrt(share * (1 - share) / sampled + z * z / (4 * sampled * sampled))
    scale = 1 + z * z / sampled
    return max(0.0, 100 * (middle - half) / scale), min(100.0, 100 * (middle + half) / scale)
