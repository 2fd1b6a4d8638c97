"""Actions and the keys they are on: what comes with ranktop, and what the user's configuration puts in its place."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from textual.binding import Binding

_SHOWN = {"pagedown": "pgdn", "pageup": "pgup", "escape": "esc", "comma": ","}
_MODIFIERS = ("ctrl+", "shift+", "alt+")


class KeysError(ValueError):
    """Keys that cannot be used: one line that names the action, the key and what is accepted."""


class Action(NamedTuple):
    """`name` is its key in the configuration, `keys` what it is on, separated by commas, `call` the app's
    `action_<call>` with its arguments, `short` its word in the bottom line, if it has one."""

    name: str
    keys: str
    call: str
    help: str
    short: str = ""

    @property
    def shown_key(self) -> str:
        """Its first key as the screen writes it."""
        key = self.keys.split(",")[0]
        return _SHOWN.get(key, key.replace("ctrl+", "^"))


def shown_keys(action: Action) -> str:
    """All its keys as the screen writes them."""
    return " ".join(action._replace(keys=key).shown_key for key in action.keys.split(","))


def view_keys(views: Iterable[Action]) -> list[tuple[str, str]]:
    """(key, name) of the views, for the bottom line."""
    return [(action.shown_key, action.name) for action in views]


def short_keys(actions: Iterable[Action]) -> list[tuple[str, str]]:
    """(key, word) for the bottom line, as far as there is room."""
    return [(action.shown_key, action.short) for action in actions if action.short]


def bindings(actions: Iterable[Action]) -> list[Binding]:
    """For the app's class: each binding bears the action's name, by which it can be put on other keys."""
    from textual.binding import Binding

    return [Binding(action.keys, action.call, action.help, show=False, id=action.name) for action in actions]


def rebound(actions: Iterable[Action], wanted: Mapping[str, str]) -> tuple[Action, ...]:
    """The actions on the user's keys. KeysError for a key that is none, and for one that two actions are on."""
    changed = tuple(
        action._replace(keys=_checked(action.name, wanted[action.name])) if action.name in wanted else action
        for action in actions
    )
    taken: dict[str, str] = {}
    for action in changed:
        for key in action.keys.split(","):
            other = taken.setdefault(key, action.name)
            if other != action.name:
                raise KeysError(f"{key!r} is on {other} and on {action.name}: give one of them another key")
    return changed


def check_names(wanted: Collection[str], actions: Iterable[Action]) -> None:
    """KeysError for a name that is no action."""
    names = [action.name for action in actions]
    for name in wanted:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(dict.fromkeys(names))}"
            raise KeysError(f"{name} is no action ({hint})")


def _checked(name: str, keys: str) -> str:
    # Only what a user configured is checked: the first picture is drawn without Textual.
    from textual.keys import Keys

    named = {key.value for key in Keys} | {"comma"}
    each = [key.strip() for key in keys.split(",")]
    for key in each:
        plain = key
        while plain.startswith(_MODIFIERS):
            plain = plain.partition("+")[2]
        if len(plain) != 1 and plain not in named:
            near = difflib.get_close_matches(plain, named, n=1)
            hint = f"did you mean {near[0]}?" if near else "like p, ?, f5, space, ctrl+p; several: p,space"
            raise KeysError(f"{name}: {key!r} is no key ({hint})")
    return ",".join(each)
