"""Commands that run until they are told to end."""

from __future__ import annotations

import signal
import threading
from types import FrameType


def until_a_signal() -> threading.Event:
    """Set by SIGTERM, SIGHUP and Ctrl-C.

    A KeyboardInterrupt that is raised in a callback of the interpreter's (a weak reference's, an import's) is lost.
    """
    stopped = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    return stopped
