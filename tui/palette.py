"""Roles to styles: the only place where a drawn line meets a colour."""

from __future__ import annotations

from collections.abc import Mapping

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.theme import Theme

from tui.draw.spans import TextLine
from tui.themes import ThemeColors


class Palette:
    """Rich styles of one theme, made once per role and weight. `ground` is the role behind the text."""

    def __init__(self, theme: ThemeColors, ground: str = "background") -> None:
        self._theme = theme
        behind = theme.colors[ground]
        self._styles: Mapping[tuple[str, bool], Style] = {
            (role, bold): Style(color=color, bgcolor=behind, bold=bold or None)
            for role, color in theme.colors.items()
            for bold in (False, True)
        }

    def on(self, ground: str) -> Palette:
        """The same theme on another ground."""
        return Palette(self._theme, ground)

    @property
    def blank(self) -> Style:
        """The ground alone."""
        return self._styles["text", False]

    def strip(self, text_line: TextLine) -> Strip:
        """A line as Textual draws it."""
        return Strip([Segment(span.text, self._styles[span.role, span.bold]) for span in text_line])


def textual_theme(theme: ThemeColors) -> Theme:
    """The same theme for what Textual draws itself: backgrounds, scroll bars, the palette."""
    colors = theme.colors
    return Theme(
        name=theme.name,
        dark=theme.dark,
        primary=colors["accent"],
        secondary=colors["bar"],
        accent=colors["accent"],
        foreground=colors["text"],
        background=colors["background"],
        surface=colors["background"],
        panel=colors["panel"],
        success=colors["ok"],
        warning=colors["warn"],
        error=colors["critical"],
    )
