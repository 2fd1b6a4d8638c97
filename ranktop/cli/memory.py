"""Memory of a process of many mostly sleeping threads that stays open all day: glibc's allocator (mallopt(3),
malloc_trim(3)) and Python's garbage collector."""

from __future__ import annotations

import ctypes
import gc

_M_ARENA_MAX = -8
"""malloc.h of glibc."""

_NEW_OBJECTS = 20_000
"""Some 2 MiB. Python's own 700 is a fraction of one verdict on 64 ranks."""


def collect_seldom() -> None:
    """A verdict is frozen and without cycles: it is freed when the next takes its place. Looked through while it is
    new, all of it is still in use; by the time so many objects are new, most of them are gone by themselves."""
    gc.set_threshold(_NEW_OBJECTS)


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
