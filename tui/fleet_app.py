"""The fleet's app: asks a Prometheus server one question at a time and draws what it last said.

The overview is a view of its own; an opened node is drawn by the same views as this machine's node.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import ClassVar

from msgspec.structs import replace
from textual.binding import BindingType

from ranktop.clock import duration, time_of_day
from ranktop.fleet.look import Fleet
from ranktop.fleet.queries import Scope
from ranktop.fleet.read import STRIP_CELLS, Reading, Wanted, read
from ranktop.fleet.rows import NodeRow
from ranktop.fleet.source import QuerySource
from ranktop.reconcile.verdict import Verdict
from ranktop.recording.times import last_day
from ranktop.sample import SourceError
from tui.actions import VIEWS
from tui.app import NOTHING
from tui.asking import in_thread
from tui.draw.glyphs import Glyphs
from tui.fleet_actions import FLEET_ACTIONS
from tui.happening import Happening
from tui.keys import bindings
from tui.moment import Moment
from tui.themes import ThemeColors
from tui.timeline import Mark, next_breach, previous_breach
from tui.trails import Trails
from tui.viewer import Viewer
from tui.views.fleet import FLEET_SORT, FleetView, fleet_verdict, next_fleet_sort, worst_node
from tui.views.sorting import next_sort
from tui.views.view import UNSORTED, Frame, NodeTarget, Sort, View

MAX_WAIT_SECONDS = 60.0
_SPANS_SECONDS = (300.0, 30 * 86400.0)


class FleetApp(Viewer):
    """Nodes behind `source`. `where` names it in the title. Keys stay live while it answers slowly or not at all."""

    TITLE = "ranktop fleet"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(FLEET_ACTIONS)]

    def __init__(
        self,
        source: QuerySource,
        scope: Scope,
        where: str,
        themes: Iterable[ThemeColors],
        glyphs: Glyphs,
        *,
        interval_seconds: float = 10.0,
        span_seconds: float = 3600.0,
        wall: Callable[[], float] = time.time,
        keys: Mapping[str, str] = NOTHING,
    ) -> None:
        """`themes` must not be empty; the first one is used from the start. `keys` are the user's, by action."""
        super().__init__(themes, glyphs, FLEET_ACTIONS, keys)
        self._source = source
        self._scope = scope
        self._where = where
        self._interval_seconds = interval_seconds
        self._span_seconds = span_seconds
        self._wall = wall
        self._wake = asyncio.Event()
        self._trails = Trails()
        self._reading: Reading | None = None
        self._problem: str | None = None
        self._failures = 0
        self._node: NodeRow | None = None
        self._when: float | None = None
        self._fleet_sort, self._node_sort = FLEET_SORT, UNSORTED

    def on_mount(self) -> None:
        self.run_worker(self._keep_asking(), exit_on_error=True)

    async def _keep_asking(self) -> None:
        """One question after the other. A failure waits twice as long each time, so that nothing is hammered."""
        while True:
            self._wake.clear()
            wanted, before = self._wanted(), self._reading
            try:
                reading = await in_thread(lambda: read(self._source, self._scope, wanted, before))  # noqa: B023
            except SourceError as problem:
                self._failures += 1
                self._problem = str(problem)
            else:
                self._failures, self._problem = 0, None
                # What was opened or left meanwhile is asked for next; an answer about another node is no news.
                if wanted.instance == self._wanted().instance:
                    self._use(reading)
            self._draw()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._wait_seconds())

    def _wanted(self) -> Wanted:
        return Wanted(self._wall(), self._when, self._node, self._span_seconds)

    def _use(self, reading: Reading) -> None:
        shown = self._reading.node if self._reading is not None else None
        if (reading.node and reading.node.instance) != (shown and shown.instance):
            self._stack, self._trails, self._rank = [VIEWS[0]], Trails(), None
            self._main.forget_cursor()
        self._reading = reading
        if reading.verdict is not None and self._when is None:
            self._trails.push(reading.verdict)

    def _wait_seconds(self) -> float | None:
        if self._failures:
            return min(MAX_WAIT_SECONDS, self._interval_seconds * 2 ** min(self._failures, 6))
        return None if self._when is not None else self._interval_seconds

    def _draw(self) -> None:
        reading, main = self._reading, self._main
        verdict, view = self._shown()
        opened = reading is not None and reading.node is not None
        sort = self._node_sort if opened else self._fleet_sort
        frame = Frame(verdict, main.size.width, self._glyphs, self._trails, sort, self._filter, self._rank)
        moment = Moment(self._mode(), self._now())
        if reading is not None:
            frame = frame._replace(events=_happenings(reading))
            moment = moment._replace(span=reading.span, marks=_marks(reading))
        main.show(frame, view, moment)
        main.show_keys(self._view_keys() if opened else [], self._short_keys(), self._stack[0].name)

    def _mode(self) -> str:
        """What is not of now does not say live."""
        if self._when is not None:
            return f"paused -{duration(max(0.0, self._wall() - self._when))}"
        if self._problem is None:
            return "live"
        return "no answer" if self._reading is None else "stale"

    def _shown(self) -> tuple[Verdict, View]:
        reading, problem = self._reading, self._trouble()
        if reading is None or reading.verdict is None:
            fleet = Fleet(self._wall(), ()) if reading is None else reading.fleet
            unknown = problem or (f"asking {self._where}" if reading is None else None)
            view = self._stack[-1] if len(self._stack) > 1 else FleetView(fleet, self._scope.group, unknown)
            verdict = fleet_verdict(fleet, self._where, unknown)
            return verdict if problem or reading else replace(verdict, headline_severity=None), view
        verdict = reading.verdict
        if problem is not None:
            verdict = replace(verdict, headline=problem, headline_severity="warn")
        return verdict, self._stack[-1]

    def _trouble(self) -> str | None:
        """Of when the picture is, which the narrowest screen must show; what came back; when it is tried again."""
        if self._problem is None:
            return None
        shown = f"shown is {time_of_day(self._reading.at_unix_seconds)}: " if self._reading is not None else ""
        return f"{shown}{self._problem}; tried again within {self._wait_seconds():.0f} s"

    def action_open(self) -> None:
        target = self._main.chosen() or self._worst_node() or self._headline_target()
        if not isinstance(target, NodeTarget):
            self._open(target)
        elif self._reading is not None:
            self._node = next((row for row in self._reading.fleet.rows if row.instance == target.instance), None)
            self._wake.set()

    def _worst_node(self) -> NodeTarget | None:
        """What Enter opens in the overview where no row is chosen, and something is wrong with a node."""
        reading = self._reading
        if reading is None or reading.node is not None or len(self._stack) > 1:
            return None
        return worst_node(reading.fleet, self._filter)

    def action_leave(self) -> None:
        if len(self._stack) > 1:
            self._stack.pop()
        elif self._filter:
            self._filter = ""
        elif self._node is not None:
            self._node = None
            if self._reading is not None:
                self._use(self._reading._replace(node=None, verdict=None))
            self._wake.set()
        self._main.forget_cursor()
        self._draw()

    def action_next_sort(self) -> None:
        if self._node is None:
            self._fleet_sort = next_fleet_sort(self._fleet_sort)
        else:
            self._node_sort = next_sort(self._node_sort)
        self._draw()

    def action_turn_sort(self) -> None:
        def turned(sort: Sort) -> Sort:
            return Sort(sort.keys, not sort.descending)

        if self._node is None:
            self._fleet_sort = turned(self._fleet_sort)
        else:
            self._node_sort = turned(self._node_sort)
        self._draw()

    def action_ask_filter(self) -> None:
        self._ask("filter: part of a node, group, role, model, version or finding", self._use_filter, self._filter)

    def action_toggle_pause(self) -> None:
        self._go_to(None if self._when is not None else self._wall())

    def action_step(self, cells: int) -> None:
        self._go_to(self._now() + cells * self._span_seconds / STRIP_CELLS)

    def action_next_breach(self) -> None:
        self._go_to_breach(next_breach)

    def action_previous_breach(self) -> None:
        self._go_to_breach(previous_breach)

    def _go_to_breach(self, find: Callable[[tuple[Mark, ...], float], float | None]) -> None:
        at = find(_marks(self._reading), self._now()) if self._reading is not None else None
        if at is not None:
            self._go_to(at)

    def action_widen(self, factor: float) -> None:
        self._span_seconds = max(_SPANS_SECONDS[0], min(_SPANS_SECONDS[1], self._span_seconds * factor))
        self._wake.set()

    def action_refresh_now(self) -> None:
        self._wake.set()

    def _verdict(self) -> Verdict | None:
        return self._reading.verdict if self._reading is not None else None

    def _now(self) -> float:
        return self._when if self._when is not None else self._wall()

    def _reach(self) -> tuple[float, float]:
        return last_day(self._wall())

    def _go_to(self, when: float | None) -> None:
        self._when = None if when is None else min(when, self._wall())
        self._wake.set()
        self._draw()


def _happenings(reading: Reading) -> tuple[Happening, ...]:
    """What the Events view has here: how the worst severity changed, and where the rest is."""
    where = "fleet" if reading.node is None else reading.node.instance
    began, *changes = reading.changes
    told = "log and findings stay there: run `ranktop` on it"
    return (
        Happening(began.at_unix_seconds, "strip", where, told, "muted"),
        *(
            Happening(at, "worst", where, severity or "nothing above info, or not scraped", severity or "muted")
            for at, severity in changes
        ),
    )


def _marks(reading: Reading) -> tuple[Mark, ...]:
    return tuple(Mark(*change) for change in reading.changes)
