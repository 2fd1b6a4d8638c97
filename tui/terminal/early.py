"""The terminal before Textual has it: the other screen with the first picture on it, and no echo of what is typed."""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

from tui.terminal.picture import Picture, erases_to_background

ENTER = "\x1b[?1049h"
"""To the other screen, as Textual's driver writes it."""
_DISABLED = b"\0"
"""_POSIX_VDISABLE of Linux, termios(3)."""
_HIDE_CURSOR, _LEAVE = "\x1b[?25l", "\x1b[?25h\x1b[?1049l"


class EarlyScreen:
    """What the app's driver takes over. Keys that are pressed meanwhile wait for it in the terminal."""

    def __init__(self, file: TextIO, environment: Mapping[str, str], size: tuple[int, int]) -> None:
        self._file = file
        self._attributes = termios.tcgetattr(file.fileno())
        self.size = size
        """Columns and rows that were drawn for."""
        self.picture = Picture(erases=erases_to_background(environment))
        """What stands there."""
        self.is_taken = False
        self._told_to_end: int | None = None

    def show(self, text: str) -> None:
        """Go to the other screen and draw there. OSError when the terminal is gone."""
        silent = termios.tcgetattr(self._file.fileno())
        silent[3] &= ~termios.ECHO
        # Ctrl-Z waits for the app too, which gives the screen back first.
        silent[6][termios.VSUSP] = _DISABLED
        self._set(silent)
        self._write(ENTER + _HIDE_CURSOR + self.picture.update(text))

    def take(self) -> Picture:
        """From now on somebody else restores the terminal."""
        self.is_taken = True
        self._set(self._attributes)
        return self.picture

    def leave(self) -> None:
        """Back to where it was, if nobody took it."""
        if not self.is_taken:
            self.take()
            with suppress(OSError):
                self._write(_LEAVE)

    def end(self, number: int, _frame: FrameType | None = None) -> None:
        """A handler of signals."""
        self._told_to_end = number
        sys.exit(128 + number)

    def end_if_told(self) -> None:
        """For after an import: what is raised in one of its callbacks is lost."""
        if self._told_to_end is not None:
            self.end(self._told_to_end)

    def _set(self, attributes: list[object]) -> None:
        with suppress(termios.error):
            termios.tcsetattr(self._file.fileno(), termios.TCSANOW, attributes)  # type: ignore[arg-type]

    def _write(self, text: str) -> None:
        rest = text.encode(self._file.encoding, "replace")
        while rest:
            rest = rest[os.write(self._file.fileno(), rest) :]


@contextmanager
def given_back(early: EarlyScreen) -> Generator[EarlyScreen]:
    """Whatever ends the block, a signal too, the terminal is as it was before."""
    before = {number: signal.signal(number, early.end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield early
    finally:
        early.leave()
        for number, handler in before.items():
            signal.signal(number, handler)
