"""Textual's driver with an output that never stops the app: only what differs, and nothing while it is behind."""

from __future__ import annotations

import asyncio
import os
from typing import Protocol, cast

from textual.drivers.linux_driver import LinuxDriver

from tui.terminal.early import ENTER, EarlyScreen
from tui.terminal.picture import Picture, erases_to_background
from tui.terminal.writer import Writer

BEHIND_BYTES = 2048
"""More than this not taken, and the next frame waits: about a tenth of a second of a line of 20 kB/s."""


class Waits(Protocol):
    """An app that draws nothing between these two calls, and everything that changed meanwhile after the second."""

    early: EarlyScreen | None

    def hold_frames(self) -> None: ...

    def release_frames(self) -> None: ...


class TerminalDriver(LinuxDriver):
    """Textual 8 lets 30 writes wait, then stops the event loop: no key, no sample, no recording until one is taken.

    Here the app holds its frames back instead, so that what comes next is the newest state.
    That is so on every line: what SSH_CONNECTION could switch off (animation, repaints within a second) is not there.
    """

    _writer: Writer | None = None
    _is_behind = False
    _is_entered = False
    """The terminal is in its other screen already."""

    def start_application_mode(self) -> None:
        loop = asyncio.get_running_loop()
        early = self._waits.early
        self._is_entered = early is not None and not early.is_taken
        self._picture = (
            early.take() if early is not None and self._is_entered else Picture(erases=erases_to_background(os.environ))
        )
        assert self._file is not None, "Textual writes to stderr, and a terminal is there"
        self._writer = Writer(
            self._file.fileno(), self._file.encoding, lambda: loop.call_soon_threadsafe(self._caught_up)
        )
        super().start_application_mode()

    def write(self, data: str) -> None:
        writer = self._writer
        assert writer is not None, "the driver must be in application mode"
        if data == ENTER and self._is_entered:
            return
        text = self._picture.update(data)
        if not self._is_behind and writer.behind_bytes + len(text) > BEHIND_BYTES:
            self._is_behind = True
            self._waits.hold_frames()
            writer.expect()
        writer.write(text)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.stop()
        super().close()

    @property
    def written_bytes(self) -> int:
        """What went to the terminal since the start."""
        return self._writer.given_bytes if self._writer is not None else 0

    def forget_picture(self) -> None:
        """Send the next frame whole."""
        self._picture.forget()

    def _caught_up(self) -> None:
        self._is_behind = False
        self._waits.release_frames()

    def _enable_mouse_support(self) -> None:
        """Clicks and the wheel. Textual also asks for every move of the mouse, and nothing here follows one."""
        if self._mouse:
            self.write("\x1b[?1000h\x1b[?1006h")

    @property
    def _waits(self) -> Waits:
        return cast(Waits, self._app)
