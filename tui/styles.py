"""Roles to styles: the only place where a role meets a colour."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace
from rich.style import Style

from tui.themes import ThemeColors

_GREY_WEIGHTS = (0.2126, 0.7152, 0.0722)

Styles = Mapping[tuple[str, bool], Style]
"""By role and weight."""


def styles_of(theme: ThemeColors, ground: str = "background") -> Styles:
    """Rich styles of one theme. `ground` is the role behind the text."""
    behind = theme.color(ground)
    return {
        (role, bold): Style(color=theme.color(role), bgcolor=behind, bold=bold or None)
        for role in theme.colors
        for bold in (False, True)
    }


def in_grey(theme: ThemeColors) -> ThemeColors:
    """The theme under `NO_COLOR`, as Textual 8 shows it (textual/color.py, `Color.monochrome`)."""
    return replace(theme, colors={role: _grey(color) for role, color in theme.colors.items()})


def _grey(color: str) -> str:
    parts = [int(color[place : place + 2], 16) for place in (1, 3, 5)]
    level = round(sum(part * weight for part, weight in zip(parts, _GREY_WEIGHTS, strict=True)))
    return f"#{level:02x}{level:02x}{level:02x}"
