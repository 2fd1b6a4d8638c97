"""What the screen sends, written by a thread of its own, and how much of it the terminal has not taken yet."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable

PIECE_BYTES = 1024
"""So that what is left is known while the terminal takes it bit by bit."""
_STUCK_SECONDS = 0.3


class Writer:
    """Never makes whoever writes wait. `caught_up` is called in its thread when all is taken, once after an `expect`.

    A terminal that is gone takes everything: the process learns of it by SIGHUP.
    """

    def __init__(self, descriptor: int, encoding: str, caught_up: Callable[[], object]) -> None:
        self._encoding = encoding
        self._descriptor = descriptor
        self._caught_up = caught_up
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._is_expected = False
        # Each is counted up by one thread only, so that neither needs a lock.
        self._given = self._taken = 0
        self._thread = threading.Thread(target=self._run, name="ranktop output", daemon=True)
        self._thread.start()

    @property
    def given_bytes(self) -> int:
        """What was written since the start."""
        return self._given

    @property
    def behind_bytes(self) -> int:
        """What the terminal has not taken yet."""
        return self._given - self._taken

    def write(self, text: str) -> None:
        """Take text along; it is written later."""
        data = text.encode(self._encoding, "replace")
        self._given += len(data)
        self._queue.put(data)

    def expect(self) -> None:
        """Ask for one call of `caught_up`. Call it before the `write` after which it is to come."""
        self._is_expected = True

    def stop(self) -> None:
        """Write what is left, as long as the terminal takes any of it."""
        self._queue.put(None)
        while self._thread.is_alive():
            taken = self._taken
            self._thread.join(_STUCK_SECONDS)
            if self._taken == taken:
                return

    def _run(self) -> None:
        while (data := self._queue.get()) is not None:
            self._write(data)
            if self._is_expected and self._queue.empty():
                self._is_expected = False
                self._caught_up()

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                taken = os.write(self._descriptor, rest[:PIECE_BYTES])
            except OSError:
                taken = len(rest)
            self._taken += taken
            rest = rest[taken:]
