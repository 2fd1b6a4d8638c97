"""Every action once: its key, its words, what it does. Bindings, bottom line, palette and help read this."""

from __future__ import annotations

from typing import NamedTuple

from tui.views.budget import BudgetView
from tui.views.events import EventsView
from tui.views.layers import LayersView
from tui.views.numa import NumaView
from tui.views.pd import PdView
from tui.views.ranks import RanksView
from tui.views.service import ServiceView
from tui.views.sources import SourcesView
from tui.views.tiers import TiersView
from tui.views.view import View

VIEWS: tuple[View, ...] = (
    RanksView(),
    BudgetView(),
    TiersView(),
    NumaView(),
    LayersView(),
    PdView(),
    ServiceView(),
    EventsView(),
    SourcesView(),
)


class Action(NamedTuple):
    """`call` is the app's `action_<call>` with its arguments, `short` its word in the bottom line, if it has one."""

    keys: str
    shown_key: str
    call: str
    help: str
    short: str = ""


MOVES: tuple[Action, ...] = (
    Action("down,j", "down", "move(1)", "cursor down"),
    Action("up,k", "up", "move(-1)", "cursor up"),
    Action("pagedown", "pgdn", "move(10)", "ten rows down"),
    Action("pageup", "pgup", "move(-10)", "ten rows up"),
)

TIMES: tuple[Action, ...] = (
    Action("n", "n", "next_breach", "to the next breach"),
    Action("N", "N", "previous_breach", "to the breach before"),
    Action("t", "t", "ask_time", "jump to a time: 14:03, 14:03:27 or -10m"),
)

ACTIONS: tuple[Action, ...] = (
    Action("question_mark", "?", "show_help", "this help", "help"),
    Action("q", "q", "quit", "quit", "quit"),
    Action("space", "space", "toggle_pause", "stop the picture, or go back to live", "pause"),
    Action("slash", "/", "ask_filter", "filter ranks or events", "filter"),
    Action("s", "s", "next_sort", "sort by the next column; the one before breaks ties", "sort"),
    Action("S", "S", "turn_sort", "turn the sorting round"),
    Action("enter", "enter", "open", "open the rank or the finding under the cursor", "open"),
    Action("escape", "esc", "leave", "back; takes a filter off"),
    *MOVES,
    Action("less_than_sign", "<", "choose_rank(-1)", "Budget: the rank before"),
    Action("greater_than_sign", ">", "choose_rank(1)", "Budget: the next rank"),
    Action("left", "left", "step(-1)", "one second back in time"),
    Action("right", "right", "step(1)", "one second on"),
    Action("left_square_bracket", "[", "step(-60)", "one minute back"),
    Action("right_square_bracket", "]", "step(60)", "one minute on"),
    *TIMES,
    Action("w", "w", "ask_what_if", "what if: another size, ratio or rank count beside the present plan"),
    Action("r", "r", "toggle_recording", "record into a file; again: stop", "record"),
    Action("m", "m", "ask_mark", "put a mark with a text into the recording"),
    Action("e", "e", "export", "write what is shown as JSON, the document of `ranktop check --json`"),
    Action("y", "y", "copy_finding", "copy the finding as Markdown (OSC 52)"),
    Action("g", "g", "toggle_gpus", "let go of the GPUs, so that one can be reset; again: take them back"),
    Action("T", "T", "next_theme", "next colour theme"),
    Action("ctrl+p", "^p", "command_palette", "all actions by name"),
)


def view_keys() -> list[tuple[str, str]]:
    """(key, name) of the nine views."""
    return [(view.key, view.name) for view in VIEWS]


def short_keys() -> list[tuple[str, str]]:
    """(key, word) for the bottom line, as far as there is room."""
    return [(action.shown_key, action.short) for action in ACTIONS if action.short]


def help_keys() -> list[tuple[str, str]]:
    """(key, what it does) of the help screen."""
    return [("1-9", ", ".join(view.name for view in VIEWS)), *((action.shown_key, action.help) for action in ACTIONS)]
