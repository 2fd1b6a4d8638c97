"""A theme as Textual draws with it."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.theme import Theme

from tui.draw.spans import TextLine
from tui.styles import styles_of
from tui.themes import ThemeColors


class Palette:
    """Rich styles of one theme, made once per role and weight. `ground` is the role behind the text."""

    def __init__(self, theme: ThemeColors, ground: str = "background") -> None:
        self._theme = theme
        self._styles = styles_of(theme, ground)

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
