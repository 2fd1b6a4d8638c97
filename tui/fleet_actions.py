"""The keys of the fleet's app, once: bindings, bottom line, palette and help read this."""

from __future__ import annotations

from tui.actions import LOOKS, MOVES, OPENING, RANKS, TIMES
from tui.keys import Action

FLEET_ACTIONS: tuple[Action, ...] = (
    *OPENING,
    Action("filter", "/", "ask_filter", "filter by node, group, role, model, version or finding", "filter"),
    Action("sort", "s", "next_sort", "sort by the next column", "sort"),
    Action("turn_sort", "S", "turn_sort", "turn the sorting round"),
    Action("open", "enter", "open", "open what is under the cursor; without one, the worst node", "open"),
    Action("leave", "escape", "leave", "back; takes a filter off"),
    *MOVES,
    *RANKS,
    Action("second_back", "left", "step(-1)", "one cell of the strip back in time", "time"),
    Action("second_on", "right", "step(1)", "one cell on"),
    Action("minute_back", "[", "step(-10)", "ten cells back"),
    Action("minute_on", "]", "step(10)", "ten cells on"),
    *TIMES,
    Action("widen", "+", "widen(2.0)", "a strip of twice the time"),
    Action("narrow", "-", "widen(0.5)", "a strip of half the time"),
    Action("refresh", "r", "refresh_now", "ask again now"),
    *LOOKS,
)
