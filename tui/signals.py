"""Signals: the screen is given back before the process ends, and a stop and go leaves it able to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import FrameType


def mind_signals(leave: Callable[[], None]) -> None:
    """Call from the running app, once its driver has its own handlers.

    Textual leaves SIGTERM and SIGHUP to the default, which ends the process with the terminal in its other screen.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, leave)
    _resume_only_what_was_suspended()


def _resume_only_what_was_suspended() -> None:
    """Textual 8 takes every SIGCONT for the end of a Ctrl-Z and starts a second thread for keys, which never ends."""
    suspend, resume = signal.getsignal(signal.SIGTSTP), signal.getsignal(signal.SIGCONT)
    if not callable(suspend) or not callable(resume):
        return
    is_suspended = False

    def suspended(number: int, frame: FrameType | None) -> None:
        nonlocal is_suspended
        is_suspended = True
        suspend(number, frame)

    def resumed(number: int, frame: FrameType | None) -> None:
        nonlocal is_suspended
        if is_suspended:
            is_suspended = False
            resume(number, frame)

    signal.signal(signal.SIGTSTP, suspended)
    signal.signal(signal.SIGCONT, resumed)
