"""The app: one tick a second takes the newest sample, judges it and draws the verdict."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from textual.binding import BindingType

from ranktop.reconcile.verdict import Verdict
from tui.actions import ACTIONS, VIEWS
from tui.draw.glyphs import Glyphs
from tui.happening import Happening, marked
from tui.keys import bindings
from tui.own import OwnCost, OwnTrail
from tui.themes import ThemeColors
from tui.timekeys import ReplayTime, TimeKeys
from tui.tools import NO_TOOLS, Failed, Recorder, Tools
from tui.viewer import Viewer
from tui.views.finding_detail import as_markdown
from tui.views.sorting import next_sort
from tui.views.view import UNSORTED, FindingTarget, Frame, Sort
from tui.views.what_if import WhatIf

TICK_SECONDS = 1.0
GIVE_BACK_SECONDS = 60.0
MOST_MARKS = 300
NOTHING: Mapping[str, str] = MappingProxyType({})


class RanktopApp(Viewer):
    """Draws verdicts as `time` gives them. Knows samples and verdicts, never /proc, NVML, a server or a file.

    The feed behind it is started and stopped by whoever made it, so that data can be there before the first paint.
    """

    TITLE = "ranktop"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS)]

    def __init__(
        self,
        time: TimeKeys,
        themes: Iterable[ThemeColors],
        glyphs: Glyphs,
        tools: Tools = NO_TOOLS,
        recorder: Recorder | None = None,
        first_view: str = VIEWS[0].name,
        *,
        keys: Mapping[str, str] = NOTHING,
        columns: Sequence[str] = (),
    ) -> None:
        """`themes` must not be empty; the first one is used from the start. `recorder` is one that runs already.

        `keys` are the user's, by the names of actions, `columns` those of the rank grid in their order, all if empty.
        """
        super().__init__(themes, glyphs, ACTIONS, keys)
        self._stack = [next(view for view in VIEWS if view.name == first_view)]
        self._columns = tuple(columns)
        self._time = time
        self._tools = tools
        self.recorder = recorder
        """The recording under way; whoever runs the app closes it."""
        self._marks: deque[Happening] = deque(maxlen=MOST_MARKS)
        self._sort = UNSORTED
        self._own_trail = OwnTrail()
        self._own: OwnCost | None = None

    def on_mount(self) -> None:
        self.set_interval(TICK_SECONDS, self._tick)
        if self._tools.give_back is not None:
            self.set_interval(GIVE_BACK_SECONDS, self._tools.give_back)

    def _begin(self) -> None:
        self._tick()

    def _tick(self) -> None:
        """Goes on while the picture stands still or a modal is open."""
        verdict = self._time.tick()
        if self.recorder is not None:
            self.recorder.put(verdict.sample, verdict)
            self._marks.extend(marked(mark.at, mark.text) for mark in self.recorder.new_marks())
        if self._tools.own is not None:
            self._own = self._own_trail.push(self._tools.own(), self.written_bytes)
        self._draw()

    def _draw(self) -> None:
        shown = self._time.shown()
        if shown is None:
            return
        main, course = self._main, self._time.course
        frame = Frame(
            shown,
            main.size.width,
            self._glyphs,
            course.trails,
            self._sort,
            self._filter,
            self._rank,
            (*course.events.rows(), *self._time.marked(), *self._marks_until(self._time.now())),
            self._columns,
            self._own,
            self._time.differences(),
            batches=course.events.batches(),
        )
        moment = self._time.moment()
        if self.recorder is not None:
            moment = moment._replace(recording=self.recorder.status)
        main.show(frame, self._stack[-1], moment)
        main.show_keys(self._view_keys(), self._short_keys(), self._stack[0].name)

    def _marks_until(self, when: float) -> list[Happening]:
        """Of the recordings of this run; a replay has its own."""
        return [mark for mark in self._marks if mark.at <= when]

    def action_open(self) -> None:
        self._open(self._main.chosen() or self._headline_target())

    def action_leave(self) -> None:
        if len(self._stack) > 1:
            self._stack.pop()
            self._main.forget_cursor()
        else:
            self._filter = ""
        self._draw()

    def action_next_sort(self) -> None:
        self._sort = next_sort(self._sort)
        self._draw()

    def action_turn_sort(self) -> None:
        self._sort = Sort(self._sort.keys, not self._sort.descending)
        self._draw()

    def action_ask_filter(self) -> None:
        self._ask("filter: part of a rank, a server, a finding or an event", self._use_filter, self._filter)

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

    def _verdict(self) -> Verdict | None:
        return self._time.shown()

    def _now(self) -> float:
        return self._time.now()

    def _reach(self) -> tuple[float, float]:
        return self._time.reach()

    def _go_to(self, when: float) -> None:
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
            self._ask("mark: what happens now", self._mark)

    def _mark(self, text: str) -> None:
        if self.recorder is not None and text.strip():
            self.recorder.mark(text)
            self._tell("marked in the recording")

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
