"""The keys of the fleet's app, once: bindings, bottom line and help read this."""

from __future__ import annotations

from tui.actions import MOVES, TIMES, VIEWS, Action

FLEET_ACTIONS: tuple[Action, ...] = (
    Action("question_mark", "?", "show_help", "this help", "help"),
    Action("q", "q", "quit", "quit", "quit"),
    Action("space", "space", "toggle_pause", "stop the picture, or go back to live", "pause"),
    Action("slash", "/", "ask_filter", "filter by node, group, role, model, version or finding", "filter"),
    Action("s", "s", "next_sort", "sort by the next column", "sort"),
    Action("S", "S", "turn_sort", "turn the sorting round"),
    Action("enter", "enter", "open", "open the node, rank or finding under the cursor", "open"),
    Action("escape", "esc", "leave", "back; takes a filter off"),
    *MOVES,
    Action("left", "left", "step(-1)", "one cell of the strip back in time", "time"),
    Action("right", "right", "step(1)", "one cell on"),
    Action("left_square_bracket", "[", "step(-10)", "ten cells back"),
    Action("right_square_bracket", "]", "step(10)", "ten cells on"),
    *TIMES,
    Action("plus", "+", "widen(2.0)", "a strip of twice the time"),
    Action("minus", "-", "widen(0.5)", "a strip of half the time"),
    Action("r", "r", "refresh_now", "ask again now"),
    Action("T", "T", "next_theme", "next colour theme"),
)


def fleet_help_keys() -> list[tuple[str, str]]:
    """(key, what it does) of the help screen."""
    views = ", ".join(view.name for view in VIEWS)
    return [("1-9", f"of an opened node: {views}"), *((one.shown_key, one.help) for one in FLEET_ACTIONS)]
