"""Importing without the garbage collector: modules make thousands of lasting objects and next to no garbage."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None]:
    """What is made in the `with` block is kept for good and never looked through again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
