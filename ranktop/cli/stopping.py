"""Commands that run until they are told to end."""

from __future__ import annotations

import signal
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import FrameType


class Stopped:
    """Whether it is time to end. One thread waits; a signal handler that interrupts it may set this.

    Not a `threading.Event`: the waiting thread holds its lock for moments, and a handler that runs then, in the same
    thread, would wait for that lock for ever. `SimpleQueue.put` can be called from a handler (docs of `queue`).
    """

    def __init__(self) -> None:
        self._is_set = False
        self._told: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        self._is_set = True
        self._told.put(None)

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Return when it is set, or after so long; whether it is."""
        if not self._is_set:
            with suppress(Empty):
                self._told.get(timeout=seconds)
        return self._is_set


def until_a_signal() -> Stopped:
    """Set by SIGTERM, SIGHUP and Ctrl-C.

    A KeyboardInterrupt that is raised in a callback of the interpreter's (a weak reference's, an import's) is lost.
    """
    stopped = Stopped()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    return stopped
