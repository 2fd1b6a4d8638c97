"""What both apps share: themes, the stack of views, the filter, questions, and the keys that act on these."""

from __future__ import annotations

import itertools
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.command import CommandPalette
from textual.events import Event, Key, Resize
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender

from ranktop.finding import Finding
from ranktop.printable import printable
from ranktop.reconcile.verdict import Verdict
from ranktop.recording.times import parse_moment
from tui.actions import SHOW_VIEWS, VIEWS
from tui.draw.glyphs import ASCII, Glyphs
from tui.keys import Action, bindings, rebound, short_keys, shown_keys, view_keys
from tui.palette import Palette, textual_theme
from tui.screens.help import HelpScreen
from tui.screens.main import MainScreen
from tui.signals import mind_signals
from tui.terminal.held import HeldApp
from tui.themes import ThemeColors
from tui.views.event_detail import EventDetail
from tui.views.finding_detail import FindingDetail
from tui.views.line_detail import LineDetail
from tui.views.rank_detail import RankDetail
from tui.views.view import EventTarget, FindingTarget, LineTarget, RankTarget, Target, View
from tui.widgets.ask import Ask
from tui.widgets.lines import AsciiBar

_MOST_LETTERS = 8000


class Viewer(HeldApp):
    """Draws the top of a stack of views on the main screen. Which verdict, and of which time, its app says."""

    CSS_PATH = "ranktop.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(SHOW_VIEWS)]

    def __init__(
        self, themes: Iterable[ThemeColors], glyphs: Glyphs, actions: Sequence[Action], keys: Mapping[str, str]
    ) -> None:
        """`themes` must not be empty; the first one is used from the start, the others when they are asked for.
        `actions` are those of the app, `keys` the user's by their names. Raises KeysError."""
        super().__init__()
        self._views = rebound(SHOW_VIEWS, keys)
        self._actions = rebound((*SHOW_VIEWS, *actions), keys)[len(SHOW_VIEWS) :]
        names = {action.name for action in (*self._views, *self._actions)}
        self.set_keymap({name: pressed for name, pressed in keys.items() if name in names})
        self._themes = itertools.cycle(themes)
        self._glyphs = glyphs
        self.set_class(glyphs is ASCII, "-ascii")
        ScrollBar.renderer = AsciiBar if glyphs is ASCII else ScrollBarRender
        self._palette = self._next_palette()
        self._main = MainScreen(self._palette, glyphs)
        self._stack: list[View] = [VIEWS[0]]
        self._filter = ""
        self._rank: RankTarget | None = None
        """The rank that was chosen last."""

    def _fatal_error(self) -> None:
        """A defect of our own. Textual would print the local variables, which hold what was read, as it came."""
        self.panic(Text(printable(traceback.format_exc()[-_MOST_LETTERS:])))

    @abstractmethod
    def _draw(self) -> None:
        """Draw everything anew."""

    @abstractmethod
    def _verdict(self) -> Verdict | None:
        """What is shown of one node; None where there is none."""

    @abstractmethod
    def _now(self) -> float:
        """The time that is shown, in Unix seconds."""

    @abstractmethod
    def _reach(self) -> tuple[float, float]:
        """First and last moment that a time typed without its day can mean."""

    @abstractmethod
    def _go_to(self, when: float) -> None:
        """Show that time, and draw."""

    def get_default_screen(self) -> Screen[None]:
        return self._main

    def on_mount(self) -> None:
        mind_signals(self.exit)
        if self.early is not None:
            # The first picture stands until the same lines are drawn: Textual begins with an empty screen.
            self.hold_frames()

    async def on_event(self, event: Event) -> None:
        """A key that came back from the screen belongs to a question that was asked meanwhile."""
        if isinstance(event, Key) and event.is_forwarded:
            asking = next(iter(self._main.query(Ask)), None)
            if asking is not None and asking.takes(event):
                return
        await super().on_event(event)

    def on_resize(self, resized: Resize) -> None:
        # The screen learns of its new size after the app does.
        self.call_after_refresh(self._draw)

    def on_main_screen_composed(self) -> None:
        self._begin()
        self.call_after_refresh(self._release_first)

    def _release_first(self) -> None:
        self.release_frames()
        self.early = None

    def _begin(self) -> None:
        """The screen can be drawn on from now on."""
        self._draw()

    def _headline_target(self) -> Target | None:
        """What Enter opens where no row is chosen: the finding that the sentence on top is of."""
        return self._main.headline_target() if len(self._stack) == 1 else None

    def _open(self, target: Target | None) -> None:
        """Show all of a finding, an event, a rank or a line."""
        if isinstance(target, FindingTarget):
            self._aim_at(target.finding)
            self._push(FindingDetail(target.finding))
        elif isinstance(target, EventTarget):
            self._push(EventDetail(target.happening))
        elif isinstance(target, RankTarget):
            self._rank = target
            self._push(RankDetail(target))
        elif isinstance(target, LineTarget):
            self._push(LineDetail(target))

    def _push(self, view: View) -> None:
        self._stack.append(view)
        self._main.forget_cursor()
        self._draw()

    def _view_keys(self) -> list[tuple[str, str]]:
        return view_keys(self._views)

    def _short_keys(self) -> list[tuple[str, str]]:
        """What holds now comes first."""
        leave = next(action.shown_key for action in self._actions if action.name == "leave")
        keys = short_keys(self._actions)
        return [(leave, f"filter {self._filter!r} off"), *keys] if self._filter else keys

    def _help_keys(self) -> list[tuple[str, str]]:
        """(key, what it does) of the help screen, as they are bound now."""
        views = f"{self._views[0].shown_key}-{self._views[-1].shown_key}", ", ".join(view.name for view in self._views)
        are_digits = [view.shown_key for view in self._views] == [view.key for view in VIEWS]
        shown = [views] if are_digits else [(shown_keys(view), view.help) for view in self._views]
        return [*shown, *((shown_keys(action), action.help) for action in self._actions)]

    def _closing_keys(self) -> str:
        """The keys that close the help again, besides its own: those that open it or go back."""
        return ",".join(action.keys for action in self._actions if action.name in ("help", "leave", "quit"))

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(CommandPalette(placeholder="what to do", id="--command-palette"))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for action in (*self._views, *self._actions):
            if action.name != "palette":
                what = action.help[:1].upper() + action.help[1:]
                yield SystemCommand(what, f"key {action.shown_key}", self._calling(action.call))

    def _calling(self, call: str) -> Callable[[], None]:
        def run() -> None:
            self.call_later(self.run_action, call)

        return run

    def _aim_at(self, finding: Finding) -> None:
        """What is looked at next is of the rank that the finding is of."""
        if finding.server is not None and finding.ranks:
            self._rank = RankTarget(finding.server, finding.ranks[0])

    def action_choose_rank(self, by: int) -> None:
        verdict = self._verdict()
        ranks = [RankTarget(rank.server, rank.rank) for rank in verdict.ranks] if verdict else []
        if ranks:
            place = next((index for index, rank in enumerate(ranks) if rank == self._rank), 0)
            self._rank = ranks[(place + by) % len(ranks)]
            self._draw()

    def action_show_view(self, name: str) -> None:
        target = self._main.chosen() or (self._main.headline_target() if self._rank is None else None)
        if isinstance(target, RankTarget):
            self._rank = target
        elif isinstance(target, FindingTarget):
            self._aim_at(target.finding)
        self._stack = [next(view for view in VIEWS if view.name == name)]
        self._main.forget_cursor()
        self._draw()

    def action_move(self, rows: int) -> None:
        self._main.move_cursor(rows)

    def action_move_page(self, pages: int) -> None:
        self._main.move_cursor(pages * self._main.rows_of_a_page())

    def action_move_to_end(self, way: int) -> None:
        self._main.move_cursor(way * self._main.rows_of_the_view())

    def action_redraw(self) -> None:
        """For when another program wrote to the terminal."""
        self.forget_picture()
        self.screen.refresh()

    def _use_filter(self, text: str) -> None:
        self._filter = text.strip()
        self._draw()

    def action_ask_time(self) -> None:
        self._ask("time: 14:03, 14:03:27, -10m or 2026-11-29T14:03", self._use_time)

    def _use_time(self, text: str) -> None:
        try:
            when = parse_moment(text, *self._reach(), self._now())
        except ValueError as problem:
            self.notify(str(problem), severity="warning", markup=False)
        else:
            # A second that is typed is all of it: what was read within it is shown.
            self._go_to(when + 0.999 if when.is_integer() else when)

    def action_show_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self._palette, self._glyphs, self._help_keys(), self._closing_keys()))

    def action_next_theme(self) -> None:
        self._palette = self._next_palette()
        self._main.use_palette(self._palette)

    def _next_palette(self) -> Palette:
        theme = next(self._themes)
        self.register_theme(textual_theme(theme))
        self.theme = theme.name
        return Palette(theme)

    def _ask(self, what: str, done: Callable[[str], None], value: str = "") -> None:
        if not self._main.query(Ask):
            self._main.mount(Ask(what, done, value))
