"""How a screen is to look and which keys it has: flags over the configuration. Imports the screen's libraries."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace
from rich.color import ColorSystem

from ranktop.cli.errors import UsageProblem
from ranktop.cli.settings import Settings, user_file
from tui.actions import ACTIONS, SHOW_VIEWS
from tui.draw.glyphs import Glyphs, choose
from tui.first import color_system
from tui.fleet_actions import FLEET_ACTIONS
from tui.keys import Action, KeysError, check_names, rebound
from tui.themes import ThemeColors, ThemeError, load_theme, packaged_themes
from tui.views.wanted_columns import ColumnsError, check_columns


class ScreenChoice(NamedTuple):
    """What every app of ranktop takes."""

    theme: ThemeColors
    others: Iterable[ThemeColors]
    """Those that come with ranktop are read when they are asked for."""
    glyphs: Glyphs
    mouse: bool
    keys: dict[str, str]
    columns: tuple[str, ...]

    @property
    def themes(self) -> Iterable[ThemeColors]:
        """The chosen one first."""
        return itertools.chain([self.theme], self.others)


def _for_this_terminal(theme: ThemeColors) -> ThemeColors:
    """Greys of NO_COLOR are made of the true colours."""
    sixteen = color_system(os.environ) is ColorSystem.STANDARD and "NO_COLOR" not in os.environ
    return replace(theme, has_sixteen=True) if sixteen else theme


def screen_choice(settings: Settings, theme: str | None, ascii_only: bool, mouse: bool) -> ScreenChoice:
    """Raises UsageProblem with one line for a theme, a key or a column that cannot be used."""
    check_screen(settings)
    screen = settings.screen
    try:
        first = load_theme(_own(theme or screen.theme))
        own = {each.name: each for each in map(load_theme, _own_themes()) if each.name != first.name}
    except ThemeError as problem:
        raise UsageProblem(str(problem)) from problem
    packaged = (load_theme(name) for name in packaged_themes() if name != first.name and name not in own)
    others = itertools.chain(packaged, own.values())
    glyphs = choose(ascii_only or screen.ascii)
    return ScreenChoice(
        _for_this_terminal(first),
        map(_for_this_terminal, others),
        glyphs,
        mouse and screen.mouse,
        settings.keys,
        screen.columns,
    )


def check_screen(settings: Settings, origin: str = "configuration") -> None:
    """Keys and columns that the screen would refuse. Raises UsageProblem that names `origin`."""
    try:
        check_names(settings.keys, every_action())
        for actions in (ACTIONS, FLEET_ACTIONS):
            rebound((*SHOW_VIEWS, *actions), settings.keys)
    except KeysError as problem:
        raise UsageProblem(f"{origin}: [keys] {problem}") from problem
    try:
        check_columns(settings.screen.columns)
    except ColumnsError as problem:
        raise UsageProblem(f"{origin}: screen.columns: {problem}") from problem


def every_action() -> Sequence[Action]:
    """Of both apps, each name once."""
    return list({action.name: action for action in (*SHOW_VIEWS, *FLEET_ACTIONS, *ACTIONS)}.values())


def _own_folder() -> Path:
    return user_file(os.environ).parent / "themes"


def _own(name: str) -> str:
    """A theme of the user's by name stands before a packaged one."""
    path = _own_folder() / f"{name}.toml"
    return str(path) if path.is_file() else name


def _own_themes() -> list[str]:
    folder = _own_folder()
    return sorted(str(path) for path in folder.glob("*.toml")) if folder.is_dir() else []
