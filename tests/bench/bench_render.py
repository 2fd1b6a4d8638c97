"""Drawing: a second of moved values, and a whole screen anew, of every view; Textual's DataTable beside them.

From the verdict to the bytes for the terminal (120x40), without the event loop between them. The DataTable has as many
rows and cells as Ranks has, and of its own work what it puts off until it is idle is not counted.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import functools
from collections.abc import Callable, Coroutine, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

from textual.app import App
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import DataTable
from textual.widgets.data_table import ColumnKey, RowKey

import tui.app
from ranktop.reconcile import Reconciler
from support import samples
from tests.bench.many import RANKS, moved
from tests.bench.micro import Case, Work, measured
from tests.bench.rows import Peer, Row
from tui.actions import VIEWS
from tui.draw.glyphs import UNICODE
from tui.eventlog import EventLog
from tui.moment import Moment
from tui.palette import Palette
from tui.screens.main import MainScreen
from tui.themes import load_theme
from tui.trails import Trails
from tui.views.view import Frame, View

WIDTH, HEIGHT = 120, 40
COLUMNS = 11
_PEER = "DataTable"


def rows() -> Iterator[Row]:
    """No budget of its own: it is in the CPU of the screen. Ranks stands beside a DataTable of as many rows."""
    # Sixty cases: in one process each, so that the whole bench stays within its quarter of an hour.
    found = list(measured("render", processes=1, runs=5))
    theirs = {row.name: row.value for row in found if row.name.endswith(_PEER)}
    for row in found:
        peer = theirs.get(row.name.removesuffix(VIEWS[0].name) + _PEER)
        if row.name not in theirs:
            yield row.beside(Peer("textual.DataTable", peer)) if peer is not None else row


def cases() -> Iterator[Case]:
    for ranks in RANKS:
        times = 10 if ranks < 1000 else 1
        for what, moves in (("a second of", True), ("a whole screen of", False)):
            for view in VIEWS:
                make = functools.partial(_view, view, ranks, moves=moves)
                yield Case(f"{ranks} ranks: {what} {view.name}", make, times=times)
            make = functools.partial(_data_table, ranks, moves=moves)
            yield Case(f"{ranks} ranks: {what} {_PEER}", make, times=times)


def _view(view: View, ranks: int, *, moves: bool) -> Work:
    palette = Palette(load_theme("night"))
    main = MainScreen(palette, UNICODE)
    paint = _Painter(main)
    frames = cycle(_frames(ranks))
    moment = Moment("live", samples.START)

    def show() -> None:
        frame = next(frames)
        main.show(frame, view, moment)
        if not moves:
            main.use_palette(palette)

    paint.settle(show)
    return lambda: paint(show)


def _frames(ranks: int) -> list[Frame]:
    """Two neighbouring seconds, to go back and forth between."""
    reconciler, trails, events = Reconciler(), Trails(), EventLog()
    verdicts = [reconciler.update(moved(ranks, second)) for second in range(3)]
    for verdict in verdicts:
        trails.push(verdict)
        events.push(verdict)
    return [Frame(verdict, WIDTH, UNICODE, trails, events=events.rows()) for verdict in verdicts[-2:]]


def _data_table(ranks: int, *, moves: bool) -> Work:
    table: DataTable[str] = DataTable()
    paint = _Painter(_TableScreen(table))
    columns: list[ColumnKey] = []
    keys: list[RowKey] = []

    def fill() -> None:
        columns.extend(table.add_columns(*(f"c{number}" for number in range(COLUMNS))))
        keys.extend(table.add_row(*["0.00/000.00"] * COLUMNS) for _ in range(ranks))

    paint.settle(fill)
    seconds = cycle(["131.20/139.80", "131.90/139.80"])

    def show() -> None:
        if moves:
            text = next(seconds)
            for key in keys:
                for column in columns[2:5]:
                    table.update_cell(key, column, text)
        else:
            table._clear_caches()
            table.refresh()

    return lambda: paint(show)


class _TableScreen(Screen[None]):
    def __init__(self, table: Widget) -> None:
        super().__init__()
        self._table = table

    def compose(self) -> Iterator[Widget]:
        yield self._table


class _Bench(App[None]):
    CSS_PATH = Path(tui.app.__file__).with_name("ranktop.tcss")

    def __init__(self, screen: Screen[None]) -> None:
        super().__init__()
        self._first = screen

    def get_default_screen(self) -> Screen[None]:
        return self._first


class _Painter:
    """The screen in an app that runs. Called with a change, it makes the change and the bytes that show it."""

    def __init__(self, screen: Screen[None]) -> None:
        self._app = _Bench(screen)
        self._screen = screen
        self._loop = asyncio.new_event_loop()
        self._context = contextvars.copy_context()
        running = self._app.run_test(size=(WIDTH, HEIGHT))
        self._pilot = self._wait_for(running.__aenter__())
        atexit.register(lambda: self._wait_for(running.__aexit__(None, None, None)))

    def settle(self, change: Callable[[], None]) -> None:
        """The first change: lines come into being, whose heights are the event loop's to lay out."""
        self.run(change)
        self._wait_for(self._pilot.pause())

    def run(self, change: Callable[[], None]) -> None:
        """As a message handler of the app would."""
        self._context.run(change)

    def __call__(self, change: Callable[[], None]) -> None:
        self._context.run(self._paint, change)

    def _paint(self, change: Callable[[], None]) -> None:
        change()
        compositor = self._screen._compositor
        compositor.update_widgets({self._screen, *self._screen.walk_children()})
        update = compositor.render_update(screen_stack=self._app._background_screens)
        if update is not None:
            update.render_segments(self._app.console)

    def _wait_for(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(self._loop.create_task(work, context=self._context))
