"""On which NUMA node pages of a process lie: the query form of move_pages(2), which moves nothing.

It looks at the pages asked for and no others, in small batches: a cost of microseconds, whatever the pool's size.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

BATCH_PAGES = 256
"""The kernel holds the process's memory lock for one batch."""

_SYSCALLS = {
    "x86_64": {"move_pages": 279, "get_mempolicy": 239},
    "aarch64": {"move_pages": 239, "get_mempolicy": 236},
}


class Tally(NamedTuple):
    """Sampled pages by node, and those not present."""

    by_node: tuple[tuple[int, int], ...]
    absent: int


def syscall_number(name: str) -> int | None:
    """The number of a system call on this machine, None where ranktop does not know it."""
    return _SYSCALLS.get(platform.machine(), {}).get(name)


def sample_addresses(start: int, size_bytes: int, page_bytes: int, count: int, rng: random.Random) -> list[int]:
    """`count` page addresses, one at a random place in each of as many equal stretches; all pages if fewer."""
    pages = size_bytes // page_bytes
    if pages <= count:
        return [start + page * page_bytes for page in range(pages)]
    edges = [pages * index // count for index in range(count + 1)]
    jitter = rng.random
    return [start + (low + int(jitter() * (high - low))) * page_bytes for low, high in itertools.pairwise(edges)]


def tally(statuses: Sequence[int]) -> Tally:
    """A status is a node, or a negated errno: ENOENT for a page that is not there, EFAULT for one never written."""
    nodes = Counter(status for status in statuses if status >= 0)
    return Tally(tuple(sorted(nodes.items())), len(statuses) - nodes.total())


class PageNodes:
    """Asks for the nodes of pages. Raises NotImplementedError where neither libnuma nor the system call is known."""

    def __init__(self) -> None:
        self._call = _libnuma_call() or _raw_call()

    def query(self, pid: int, addresses: Sequence[int]) -> list[int]:
        """The status of every page, in order. Raises OSError: EPERM, ESRCH, ENOSYS."""
        statuses: list[int] = []
        for first in range(0, len(addresses), BATCH_PAGES):
            batch = addresses[first : first + BATCH_PAGES]
            pages = (ctypes.c_void_p * len(batch))(*batch)
            answer = (ctypes.c_int * len(batch))()
            if self._call(pid, len(batch), pages, answer) != 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code), f"move_pages of {pid}")
            statuses.extend(answer)
        return statuses


def _libnuma_call() -> Callable[..., int] | None:
    """libnuma's wrapper, which knows the number on every architecture. Only if loaded already: loading can print."""
    try:
        library = ctypes.CDLL("libnuma.so.1", mode=os.RTLD_NOLOAD, use_errno=True)
        entry = library.move_pages
    except (OSError, AttributeError):
        return None
    entry.restype = ctypes.c_long

    def call(pid: int, count: int, pages: Any, answer: Any) -> int:
        return entry(pid, ctypes.c_ulong(count), pages, None, answer, 0)

    return call


def _raw_call() -> Callable[..., int]:
    number = syscall_number("move_pages")
    if number is None:
        raise NotImplementedError(f"no move_pages on {platform.machine()} without libnuma")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long

    def call(pid: int, count: int, pages: Any, answer: Any) -> int:
        return libc.syscall(
            ctypes.c_long(number), ctypes.c_long(pid), ctypes.c_ulong(count), pages, None, answer, ctypes.c_long(0)
        )

    return call
