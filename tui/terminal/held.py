"""An app whose frames can be held back."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from rich.console import RenderableType
from textual.app import App
from textual.driver import Driver
from textual.events import Resize
from textual.screen import Screen

if TYPE_CHECKING:
    from tui.terminal.driver import TerminalDriver
    from tui.terminal.early import EarlyScreen


class HeldApp(App[None]):
    """Between `hold_frames` and `release_frames` changes gather, and are drawn in one frame."""

    early: EarlyScreen | None = None
    """What stands on the terminal already; its driver takes that over."""
    _hold: ExitStack | None = None
    _is_lost = False
    _has_size = False

    def get_driver_class(self) -> type[Driver]:
        """Ours on a terminal. What the environment names (textual-serve, a test) is left as it is."""
        from textual.drivers.linux_driver import LinuxDriver

        kind = super().get_driver_class()
        return _driver_class() if kind is LinuxDriver else kind

    def on_resize(self, resized: Resize) -> None:
        # The first one tells the size at the start. After a later one nobody knows what the terminal kept.
        is_first, self._has_size = not self._has_size, True
        if not (is_first and self.early is not None and self.early.size == resized.size):
            self.forget_picture()

    def forget_picture(self) -> None:
        """Send the next frame whole: nobody knows what the terminal shows now."""
        if isinstance(self._driver, _driver_class()):
            self._driver.forget_picture()

    @property
    def written_bytes(self) -> int | None:
        """What went to the terminal since the start; None where another driver writes (a browser, a test)."""
        return self._driver.written_bytes if isinstance(self._driver, _driver_class()) else None

    def hold_frames(self) -> None:
        if self._hold is None:
            self._hold = ExitStack()
            self._hold.enter_context(self.batch_update())

    def release_frames(self) -> None:
        if self._hold is not None:
            self._hold.close()
            self._hold = None
            if self._is_lost and self._running:
                self._is_lost = False
                self.screen.refresh()
            for screen in self.screen_stack if self._running else ():
                screen.check_idle()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """A resize or a new screen draws in spite of a batch, and Textual drops it: all is drawn anew then."""
        self._is_lost |= self._hold is not None and renderable is not None
        super()._display(screen, renderable)


def _driver_class() -> type[TerminalDriver]:
    """Imported when an app is made, as Textual does with its own."""
    from tui.terminal.driver import TerminalDriver

    return TerminalDriver
