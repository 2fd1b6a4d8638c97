"""What both apps share: themes, the stack of views, the filter, questions, and the keys that act on these."""

from __future__ import annotations

import traceback
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from ranktop.printable import printable
from tui.actions import VIEWS
from tui.draw.glyphs import Glyphs
from tui.moment import parse_time
from tui.palette import Palette, textual_theme
from tui.screens.help import HelpScreen
from tui.screens.main import MainScreen
from tui.signals import mind_signals
from tui.themes import ThemeColors
from tui.trails import Trails
from tui.views.view import View
from tui.widgets.ask import Ask

_MOST_LETTERS = 8000


class Viewer(App[None]):
    """Draws the top of a stack of views on the main screen. Which verdict, and of which time, its app says."""

    CSS_PATH = "ranktop.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(view.key, f"show_view('{view.name}')", view.name, show=False) for view in VIEWS
    ]

    def __init__(self, themes: list[ThemeColors], glyphs: Glyphs) -> None:
        """`themes` must not be empty; the first one is used from the start."""
        super().__init__()
        self._themes = themes
        self._glyphs = glyphs
        self._palettes = {theme.name: Palette(theme) for theme in themes}
        self._trails = Trails()
        self._stack: list[View] = [VIEWS[0]]
        self._filter = ""
        for theme in themes:
            self.register_theme(textual_theme(theme))
        self.theme = themes[0].name

    def _fatal_error(self) -> None:
        """A defect of our own. Textual would print the local variables, which hold what was read, as it came."""
        self.panic(Text(printable(traceback.format_exc()[-_MOST_LETTERS:])))

    @abstractmethod
    def _draw(self) -> None:
        """Draw everything anew."""

    @abstractmethod
    def _now(self) -> float:
        """The time that is shown, in Unix seconds: a time typed without its day is of that day."""

    @abstractmethod
    def _go_to(self, when: float) -> None:
        """Show that time, and draw."""

    @abstractmethod
    def _help_keys(self) -> list[tuple[str, str]]:
        """(key, what it does) of the help screen."""

    def get_default_screen(self) -> Screen[None]:
        return MainScreen(self._palettes[self.theme], self._glyphs)

    def on_mount(self) -> None:
        mind_signals(self.exit)

    def on_resize(self) -> None:
        # The screen learns of its new size after the app does.
        self.call_after_refresh(self._draw)

    @property
    def _main(self) -> MainScreen:
        screen = self.screen_stack[0]
        assert isinstance(screen, MainScreen)
        return screen

    def _push(self, view: View) -> None:
        self._stack.append(view)
        self._main.forget_cursor()
        self._draw()

    def _filter_keys(self) -> list[tuple[str, str]]:
        return [("esc", f"filter {self._filter!r} off")] if self._filter else []

    def action_show_view(self, name: str) -> None:
        self._stack = [next(view for view in VIEWS if view.name == name)]
        self._main.forget_cursor()
        self._draw()

    def action_move(self, rows: int) -> None:
        self._main.move_cursor(rows)

    def _use_filter(self, text: str) -> None:
        self._filter = text.strip()
        self._draw()

    def action_ask_time(self) -> None:
        self._ask("time: 14:03, 14:03:27 or -10m", self._use_time)

    def _use_time(self, text: str) -> None:
        when = parse_time(text, self._now())
        if when is None:
            self.notify(f"{text!r} is no time (like 14:03, 14:03:27 or -10m)", severity="warning", markup=False)
        else:
            self._go_to(when)

    def action_show_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self._palettes[self.theme], self._glyphs, self._help_keys()))

    def action_next_theme(self) -> None:
        names = [theme.name for theme in self._themes]
        self.theme = names[(names.index(self.theme) + 1) % len(names)]
        self._main.use_palette(self._palettes[self.theme])

    def _ask(self, what: str, done: Callable[[str], None], value: str = "") -> None:
        if not self._main.query(Ask):
            self._main.mount(Ask(what, done, value))
