"""glibc's allocator, set for a process of many mostly sleeping threads (mallopt(3), malloc_trim(3))."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8
"""malloc.h of glibc."""


def share_one_arena() -> None:
    """For threads that start from now on. Each source has one, and a heap of its own for every thread is mostly holes:
    2 MiB. They hardly ever allocate at once, as Python runs one of them at a time."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)


def give_back() -> None:
    """Whole pages that hold nothing, to the kernel: a third of a millisecond. Only glibc has the call."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
