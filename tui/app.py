"""The app: one tick a second takes the newest sample, judges it and draws the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tui.actions import ACTIONS, VIEWS, help_keys, short_keys, view_keys
from tui.draw.glyphs import Glyphs
from tui.eventlog import EventLog
from tui.moment import parse_time
from tui.palette import Palette, textual_theme
from tui.screens.help import HelpScreen
from tui.screens.main import MainScreen
from tui.signals import mind_signals
from tui.themes import ThemeColors
from tui.timekeys import ReplayTime, TimeKeys
from tui.tools import NO_TOOLS, Failed, Recorder, Tools
from tui.trails import Trails
from tui.views.finding_detail import FindingDetail, as_markdown
from tui.views.rank_detail import RankDetail
from tui.views.sorting import next_sort
from tui.views.view import UNSORTED, FindingTarget, Frame, RankTarget, Sort, View
from tui.views.what_if import WhatIf
from tui.widgets.ask import Ask

TICK_SECONDS = 1.0


class RanktopApp(App[None]):
    """Draws verdicts as `time` gives them. Knows samples and verdicts, never /proc, NVML, a server or a file.

    The feed behind it is started and stopped by whoever made it, so that data can be there before the first paint.
    """

    CSS_PATH = "ranktop.tcss"
    TITLE = "ranktop"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(view.key, f"show_view('{view.name}')", view.name, show=False) for view in VIEWS),
        *(Binding(action.keys, action.call, action.help, show=False) for action in ACTIONS),
        Binding("ctrl+z", "suspend_process", "to the shell (fg comes back)", show=False),
    ]

    def __init__(
        self,
        time: TimeKeys,
        themes: list[ThemeColors],
        glyphs: Glyphs,
        tools: Tools = NO_TOOLS,
        recorder: Recorder | None = None,
    ) -> None:
        """`themes` must not be empty; the first one is used from the start. `recorder` is one that runs already."""
        super().__init__()
        self._time = time
        self._themes = themes
        self._glyphs = glyphs
        self._tools = tools
        self.recorder = recorder
        """The recording under way; whoever runs the app closes it."""
        self._palettes = {theme.name: Palette(theme) for theme in themes}
        self._trails = Trails()
        self._events = EventLog()
        self._stack: list[View] = [VIEWS[0]]
        self._sort = UNSORTED
        self._filter = ""
        self._rank: RankTarget | None = None
        for theme in themes:
            self.register_theme(textual_theme(theme))
        self.theme = themes[0].name

    def get_default_screen(self) -> Screen[None]:
        return MainScreen(self._palettes[self.theme], self._glyphs)

    def on_mount(self) -> None:
        mind_signals(self.exit)
        self.call_after_refresh(self._tick)
        self.set_interval(TICK_SECONDS, self._tick)

    def on_resize(self) -> None:
        # The screen learns of its new size after the app does.
        self.call_after_refresh(self._draw)

    def _tick(self) -> None:
        """Goes on while the picture stands still or a modal is open."""
        verdict = self._time.tick()
        if self.recorder is not None:
            self.recorder.put(verdict.sample, verdict)
        self._trails.push(verdict)
        self._events.push(verdict)
        self._draw()

    def _draw(self) -> None:
        shown = self._time.shown()
        if shown is None:
            return
        main = self._main
        frame = Frame(
            shown,
            main.size.width,
            self._glyphs,
            self._trails,
            self._sort,
            self._filter,
            self._rank,
            self._events.rows(),
        )
        moment = self._time.moment()
        if self.recorder is not None:
            moment = moment._replace(recording=self.recorder.status)
        main.show(frame, self._stack[-1], moment)
        others = [("esc", f"filter {self._filter!r} off")] if self._filter else []
        main.show_keys(view_keys(), [*others, *short_keys()], self._stack[0].name)

    @property
    def _main(self) -> MainScreen:
        screen = self.screen_stack[0]
        assert isinstance(screen, MainScreen)
        return screen

    def action_show_view(self, name: str) -> None:
        self._stack = [next(view for view in VIEWS if view.name == name)]
        self._main.forget_cursor()
        self._draw()

    def action_open(self) -> None:
        target = self._main.chosen()
        if target is None:
            return
        if isinstance(target, FindingTarget):
            self._stack.append(FindingDetail(target.finding))
        else:
            self._rank = target
            self._stack.append(RankDetail(target))
        self._main.forget_cursor()
        self._draw()

    def action_leave(self) -> None:
        if len(self._stack) > 1:
            self._stack.pop()
            self._main.forget_cursor()
        else:
            self._filter = ""
        self._draw()

    def action_move(self, rows: int) -> None:
        self._main.move_cursor(rows)

    def action_choose_rank(self, by: int) -> None:
        shown = self._time.shown()
        ranks = [RankTarget(rank.server, rank.rank) for rank in shown.ranks] if shown else []
        if ranks:
            place = next((index for index, rank in enumerate(ranks) if rank == self._rank), 0)
            self._rank = ranks[(place + by) % len(ranks)]
            self._draw()

    def action_next_sort(self) -> None:
        self._sort = next_sort(self._sort)
        self._draw()

    def action_turn_sort(self) -> None:
        self._sort = Sort(self._sort.keys, not self._sort.descending)
        self._draw()

    def action_ask_filter(self) -> None:
        self._ask("filter: part of a rank, a server, a finding or an event", self._use_filter, self._filter)

    def _use_filter(self, text: str) -> None:
        self._filter = text.strip()
        self._draw()

    def action_toggle_pause(self) -> None:
        self._time.toggle_pause()
        self._draw_moved()

    def action_step(self, seconds: int) -> None:
        self._time.step(seconds)
        self._draw_moved()

    def action_next_breach(self) -> None:
        self._time.next_breach()
        self._draw_moved()

    def action_previous_breach(self) -> None:
        self._time.previous_breach()
        self._draw_moved()

    def _draw_moved(self) -> None:
        """A replay has another sample now; a live picture is only drawn again."""
        if isinstance(self._time, ReplayTime):
            self._tick()
        else:
            self._draw()

    def action_ask_time(self) -> None:
        self._ask("time: 14:03, 14:03:27 or -10m", self._use_time)

    def _use_time(self, text: str) -> None:
        when = parse_time(text, self._time.now())
        if when is None:
            self.notify(f"{text!r} is no time (like 14:03, 14:03:27 or -10m)", severity="warning", markup=False)
            return
        self._time.go_to(when)
        self._draw_moved()

    def action_ask_what_if(self) -> None:
        self._ask("what if: flags over the present launch, like --hicache-size 96", self._use_what_if)

    def _use_what_if(self, text: str) -> None:
        if text.strip():
            self._stack = [self._stack[0], WhatIf(text.strip())]
            self._main.forget_cursor()
            self._draw()

    def action_copy_finding(self) -> None:
        target = self._main.chosen()
        if isinstance(target, FindingTarget):
            self.copy_to_clipboard(as_markdown(target.finding))
            self._tell(f"{target.finding.code} copied")

    def action_toggle_recording(self) -> None:
        if self.recorder is not None:
            closed, self.recorder = self.recorder.stop(), None
            self._tell("recording closed" if closed else "the disk does not answer; what was written can be read")
        elif self._tools.new_recorder is None:
            self._tell("nothing can be recorded here")
        else:
            try:
                path, self.recorder = self._tools.new_recorder()
            except Failed as problem:
                self._tell(str(problem))
            else:
                self._tell(f"recording into {path}")
        self._draw()

    def action_ask_mark(self) -> None:
        if self.recorder is None:
            self._tell("no recording runs: r starts one")
        else:
            self._ask("mark: what happens now", self.recorder.mark)

    def action_export(self) -> None:
        shown = self._time.shown()
        if shown is None or self._tools.export is None:
            self._tell("nothing can be written here")
            return
        try:
            self._tell(f"written to {self._tools.export(shown)}")
        except Failed as problem:
            self._tell(str(problem))

    def _tell(self, text: str) -> None:
        self.notify(text, markup=False)

    def action_toggle_gpus(self) -> None:
        if self._tools.gpus is None:
            self._tell("there is no driver session here")
        elif self._tools.gpus.is_released:
            self._tools.gpus.resume()
            self._tell("GPUs are read again")
        else:
            self._tools.gpus.release()
            self._tell("GPUs are let go of at the next reading: one can be reset now")

    def action_show_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self._palettes[self.theme], self._glyphs, help_keys()))

    def action_next_theme(self) -> None:
        names = [theme.name for theme in self._themes]
        self.theme = names[(names.index(self.theme) + 1) % len(names)]
        self._main.use_palette(self._palettes[self.theme])

    def _ask(self, what: str, done: Callable[[str], None], value: str = "") -> None:
        if not self._main.query(Ask):
            self._main.mount(Ask(what, done, value))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for view in VIEWS:
            yield SystemCommand(view.name.capitalize(), f"key {view.key}", self._calling(f"show_view('{view.name}')"))
        for action in ACTIONS:
            if action.call not in ("command_palette", "open"):
                yield SystemCommand(action.help.capitalize(), f"key {action.shown_key}", self._calling(action.call))

    def _calling(self, call: str) -> Callable[[], None]:
        def run() -> None:
            self.call_later(self.run_action, call)

        return run
