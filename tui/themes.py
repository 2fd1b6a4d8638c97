"""Themes from TOML: the packaged ones and files of the user's."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from msgspec import Struct

ROLES = (
    "background",
    "panel",
    "text",
    "strong",
    "muted",
    "faint",
    "accent",
    "bar",
    "ok",
    "info",
    "warn",
    "breach",
    "critical",
)
"""Every colour that a theme must give. `faint` draws rules and empty bars only, never text."""

DEFAULT_THEME = "night"
_HEX = re.compile(r"#[0-9a-fA-F]{6}")


class ThemeError(ValueError):
    """A theme file that cannot be used: one line that names the file, the key and what is accepted."""


class ThemeColors(Struct, frozen=True):
    """A theme: hex colours by role, and which of a terminal's own sixteen stand for them where there are no more."""

    name: str
    dark: bool
    colors: dict[str, str]
    ansi: dict[str, int] = {}
    """All roles or none: then the nearest of the sixteen are taken, which can be one for several roles."""
    has_sixteen: bool = False
    """The terminal shows no others."""

    def color(self, role: str) -> str:
        """As Rich reads it."""
        return f"color({self.ansi[role]})" if self.has_sixteen and self.ansi else self.colors[role]


def packaged_themes() -> tuple[str, ...]:
    """Names of the themes that come with ranktop, the default first."""
    names = sorted(
        entry.name.removesuffix(".toml")
        for entry in resources.files("themes").iterdir()
        if entry.name.endswith(".toml")
    )
    return tuple(sorted(names, key=lambda name: name != DEFAULT_THEME))


def load_theme(name_or_path: str) -> ThemeColors:
    """A packaged theme by name, or a TOML file by path."""
    source: Traversable | Path
    if name_or_path.endswith(".toml"):
        source = Path(name_or_path)
    elif name_or_path in packaged_themes():
        source = resources.files("themes") / f"{name_or_path}.toml"
    else:
        raise ThemeError(f"theme {name_or_path!r}: unknown (one of {', '.join(packaged_themes())}, or a .toml file)")
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ThemeError(f"theme {name_or_path}: cannot be read: {problem}") from problem
    return parse_theme(text, name_or_path)


def parse_theme(text: str, where: str) -> ThemeColors:
    """A theme from TOML text. Every role must be there, as #rrggbb."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ThemeError(f"theme {where}: not TOML: {problem}") from problem
    colors: Any = document.get("colors")
    if not isinstance(colors, dict):
        raise ThemeError(f"theme {where}: has no [colors] table")
    for role in ROLES:
        color: Any = colors.get(role)
        if not isinstance(color, str) or not _HEX.fullmatch(color):
            raise ThemeError(f"theme {where}: colors.{role} is {color!r}, must be like '#11aa22'")
    ansi: Any = document.get("ansi", {})
    if not isinstance(ansi, dict) or (ansi and set(ansi) != set(ROLES)) or not set(ansi.values()) <= set(range(16)):
        raise ThemeError(f"theme {where}: [ansi] must give a number from 0 to 15 for each of {', '.join(ROLES)}")
    unknown = sorted(set(colors) - set(ROLES))
    if unknown:
        raise ThemeError(f"theme {where}: colors.{unknown[0]} is no colour of ranktop ({', '.join(ROLES)})")
    name, dark = document.get("name"), document.get("dark")
    if not isinstance(name, str) or not isinstance(dark, bool):
        raise ThemeError(f'theme {where}: needs name = "..." and dark = true or false')
    return ThemeColors(name, dark, {role: colors[role] for role in ROLES}, ansi)
