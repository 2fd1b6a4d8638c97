"""Every action once: its key, its name on the screen, what it does. Bindings, footer and help come from here."""

from __future__ import annotations

from typing import NamedTuple


class Action(NamedTuple):
    """`name` is the method `action_<name>` of the app."""

    key: str
    shown_key: str
    name: str
    title: str
    in_footer: bool = True


ACTIONS: tuple[Action, ...] = (
    Action("q", "q", "quit", "quit"),
    Action("space", "space", "toggle_pause", "pause"),
    Action("question_mark", "?", "show_help", "help"),
    Action("T", "T", "next_theme", "theme"),
    Action("ctrl+p", "^p", "command_palette", "palette"),
)
SCROLL_HELP = ("up down", "scroll ranks, or findings when all ranks fit")


def footer_keys() -> list[tuple[str, str]]:
    """(key, word) of the bottom line."""
    return [(action.shown_key, action.title) for action in ACTIONS if action.in_footer]


def help_keys() -> list[tuple[str, str]]:
    """(key, what it does) of the help screen."""
    return [*((action.shown_key, action.title) for action in ACTIONS), SCROLL_HELP]
