"""The app: one tick a second takes the newest sample, judges it and draws the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from ranktop.reconcile.verdict import Verdict
from ranktop.sample import Sample, SampleFeed
from tui.actions import ACTIONS, footer_keys, help_keys
from tui.draw.glyphs import Glyphs
from tui.palette import Palette, textual_theme
from tui.screens.help import HelpScreen
from tui.screens.ranks import RanksScreen
from tui.themes import ThemeColors

TICK_SECONDS = 1.0

Judge = Callable[[Sample], Verdict]


class RanktopApp(App[None]):
    """Draws what `judge` says of what `feed` gives. Knows samples and verdicts, never /proc, NVML or a server.

    The feed is started and stopped by whoever made it, so that data can be there before the first paint.
    """

    CSS_PATH = "ranktop.tcss"
    TITLE = "ranktop"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(action.key, action.name, action.title, show=False, priority=action.key == "ctrl+p")
        for action in ACTIONS
    ]

    def __init__(self, feed: SampleFeed, judge: Judge, themes: list[ThemeColors], glyphs: Glyphs) -> None:
        """`themes` must not be empty; the first one is used from the start."""
        super().__init__()
        self._feed = feed
        self._judge = judge
        self._themes = themes
        self._glyphs = glyphs
        self._palettes = {theme.name: Palette(theme) for theme in themes}
        self._latest: Verdict | None = None
        self._shown: Verdict | None = None
        self._paused = False
        for theme in themes:
            self.register_theme(textual_theme(theme))
        self.theme = themes[0].name

    def get_default_screen(self) -> Screen[None]:
        return RanksScreen(self._palettes[self.theme], self._glyphs)

    def on_mount(self) -> None:
        self.call_after_refresh(self._tick)
        self.set_interval(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        """Sampling and judging go on while the picture is paused or a modal is open."""
        self._latest = self._judge(self._feed.sample())
        if not self._paused:
            self._shown = self._latest
        self._draw()

    def _draw(self) -> None:
        shown, latest = self._shown, self._latest
        screen = next((screen for screen in self.screen_stack if isinstance(screen, RanksScreen)), None)
        if shown is None or latest is None or screen is None:
            return
        mode = "paused" if self._paused else "live"
        screen.show(shown, mode=mode, now=shown.sample.at_unix_seconds, keys=footer_keys())

    def action_toggle_pause(self) -> None:
        """The picture stands still; its time shows how old it is."""
        self._paused = not self._paused
        self._shown = self._latest
        self._draw()

    def action_show_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self._palettes[self.theme], self._glyphs, help_keys()))

    def action_next_theme(self) -> None:
        names = [theme.name for theme in self._themes]
        self.theme = names[(names.index(self.theme) + 1) % len(names)]
        for screen in self.screen_stack:
            if isinstance(screen, RanksScreen):
                screen.use_palette(self._palettes[self.theme])

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for action in ACTIONS:
            if action.name != "command_palette":
                yield SystemCommand(
                    action.title.capitalize(), f"key {action.shown_key}", getattr(self, f"action_{action.name}")
                )
