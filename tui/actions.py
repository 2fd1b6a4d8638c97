"""Every action once: its key, its words, what it does. Bindings, bottom line, palette and help read this."""

from __future__ import annotations

from tui.keys import Action
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


SHOW_VIEWS: tuple[Action, ...] = tuple(
    Action(view.name, view.key, f"show_view('{view.name}')", f"view {view.name}: {asks}")
    for view, asks in zip(
        VIEWS,
        (
            "which rank is not like the plan, or like the others",
            "where the bytes go, by which formula",
            "whether hits in L1, L2 and L3 happen",
            "whether pools lie beside their GPU, and what is left",
            "who owns which layers",
            "prefill and decode: registered, transferring, failing",
            "how long users wait, and how much is served",
            "what happened, newest first",
            "what is read, how old it is, what fails and why",
        ),
        strict=True,
    )
)

MOVES: tuple[Action, ...] = (
    Action("down", "down,j", "move(1)", "cursor down"),
    Action("up", "up,k", "move(-1)", "cursor up"),
    Action("page_down", "pagedown,ctrl+f", "move_page(1)", "a screenful down"),
    Action("page_up", "pageup,ctrl+b", "move_page(-1)", "a screenful up"),
    Action("top", "home", "move_to_end(-1)", "to the first row"),
    Action("bottom", "end,G", "move_to_end(1)", "to the last row"),
)

RANKS: tuple[Action, ...] = (
    Action("rank_before", "<", "choose_rank(-1)", "Budget: the rank before"),
    Action("rank_after", ">", "choose_rank(1)", "Budget: the next rank"),
)

TIMES: tuple[Action, ...] = (
    Action("next_breach", "n", "next_breach", "to the next breach"),
    Action("previous_breach", "N", "previous_breach", "to the breach before"),
    Action("time", "t", "ask_time", "jump to a time: 14:03, 14:03:27 or -10m"),
)

OPENING: tuple[Action, ...] = (
    Action("help", "?", "show_help", "this help", "help"),
    Action("quit", "q", "quit", "quit", "quit"),
    Action("pause", "space", "toggle_pause", "stop the picture, or go back to live", "pause"),
)

LOOKS: tuple[Action, ...] = (
    Action("theme", "T", "next_theme", "next colour theme"),
    Action("redraw", "ctrl+l", "redraw", "draw the whole screen anew"),
    Action("palette", "ctrl+p", "command_palette", "all actions by name"),
    Action("suspend", "ctrl+z", "suspend_process", "to the shell (fg comes back)"),
)

ACTIONS: tuple[Action, ...] = (
    *OPENING,
    Action("filter", "/", "ask_filter", "filter ranks or events", "filter"),
    Action("sort", "s", "next_sort", "sort by the next column; the one before breaks ties", "sort"),
    Action("turn_sort", "S", "turn_sort", "turn the sorting round"),
    Action("open", "enter", "open", "open what is under the cursor; without one, the finding of the sentence", "open"),
    Action("leave", "escape", "leave", "back; takes a filter off"),
    *MOVES,
    *RANKS,
    Action("second_back", "left", "step(-1)", "one second back in time"),
    Action("second_on", "right", "step(1)", "one second on"),
    Action("minute_back", "[", "step(-60)", "one minute back"),
    Action("minute_on", "]", "step(60)", "one minute on"),
    *TIMES,
    Action("what_if", "w", "ask_what_if", "what if: another size, ratio or rank count beside the present plan"),
    Action("record", "r", "toggle_recording", "record into a file; again: stop", "record"),
    Action("mark", "m", "ask_mark", "put a mark with a text into the recording"),
    Action("export", "e", "export", "write what is shown as JSON, the document of `ranktop check --json`"),
    Action("copy", "y", "copy_finding", "copy the finding as Markdown (OSC 52)"),
    Action("gpus", "g", "toggle_gpus", "let go of the GPUs, so that one can be reset; again: take them back"),
    *LOOKS,
)
