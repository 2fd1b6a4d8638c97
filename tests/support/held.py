"""Processes that a test may end: held by pidfd, so that a pid which somebody else has by now is never killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress


class Held:
    """Processes that live now; those that have ended by the time of `kill` are left alone (pidfd_open(2))."""

    def __init__(self, pids: Iterable[int] = ()) -> None:
        self._fds: list[int] = []
        for pid in pids:
            self.hold(pid)

    def hold(self, pid: int) -> None:
        """One more. One that is gone already needs no end."""
        with suppress(ProcessLookupError):
            self._fds.append(os.pidfd_open(pid))

    def kill(self) -> None:
        """SIGKILL to all of them, once."""
        while self._fds:
            fd = self._fds.pop()
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            os.close(fd)
