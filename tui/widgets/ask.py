"""One line of input at the bottom: a filter, a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Focus, Key
from textual.widgets import Input


class Ask(Input):
    """Gives its text to `done` on enter, or nothing on escape, and goes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel", show=False),
    ]

    def __init__(self, what: str, done: Callable[[str], None], value: str = "") -> None:
        super().__init__(value=value, placeholder=what, id="ask", select_on_focus=False)
        self._done = done
        self._focused_at: float | None = None
        """On the clock of Textual's messages."""

    def takes(self, key: Key) -> bool:
        """Whether the key was pressed before this had the focus, and so went to the screen. Over a slow line the keys
        that ask and the answer come in one piece: none of the answer may act as a key."""
        if self._focused_at is not None and key.time >= self._focused_at:
            return False
        self.post_message(Key(key.key, key.character))
        return True

    def on_focus(self, event: Focus) -> None:
        self._focused_at = event.time

    def on_mount(self) -> None:
        self.focus()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self._done(self.value)
        self.remove()

    def action_cancel(self) -> None:
        self.remove()
