"""Importing for a screen that stays open all day: without the garbage collector, and without what is not used."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType


@contextmanager
def uncollected() -> Generator[None]:
    """What is made in the `with` block is kept for good and never looked through again: modules make thousands of
    lasting objects and next to no garbage."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def tls_later() -> Generator[None]:
    """`asyncio` and `http.client` import ssl in case they need it, and do without it otherwise. OpenSSL takes 4.4 MiB.

    Only this thread, only in the `with` block: whoever speaks TLS imports ssl when it does (`collectors/http.py`).
    """
    finder = _NoTls(threading.get_ident())
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _NoTls:
    def __init__(self, thread: int) -> None:
        self._thread = thread

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "ssl" and threading.get_ident() == self._thread:
            raise ModuleNotFoundError("ssl is imported when TLS is spoken", name="ssl")
        return None
