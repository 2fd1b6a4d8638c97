"""An app whose frames can be held back."""

from __future__ import annotations

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
    """Between `hold_frames` and `release_frames` nothing is sent; then what is there is drawn in one frame."""

    early: EarlyScreen | None = None
    """What stands on the terminal until the first frame; the driver takes that over."""
    _is_held = False
    _is_lost = False

    def get_driver_class(self) -> type[Driver]:
        """Ours on a terminal. What the environment names (textual-serve, a test) is left as it is."""
        from textual.drivers.linux_driver import LinuxDriver

        kind = super().get_driver_class()
        return _driver_class() if kind is LinuxDriver else kind

    def on_resize(self, resized: Resize) -> None:
        # The first ones tell the size at the start. After a later one nobody knows what the terminal kept.
        if self.early is None or self.early.size != resized.size:
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
        self._is_held = True

    def release_frames(self) -> None:
        self._is_held = False
        if self._is_lost and self._running:
            self._is_lost = False
            self.screen.refresh()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        # Not Textual's `batch_update`: with two changes of size in one, Textual 8.2 lays the screen out for ever,
        # for the one size and the other in turns.
        if self._is_held:
            self._is_lost |= renderable is not None
        else:
            super()._display(screen, renderable)


def _driver_class() -> type[TerminalDriver]:
    """Imported when an app is made, as Textual does with its own."""
    from tui.terminal.driver import TerminalDriver

    return TerminalDriver
