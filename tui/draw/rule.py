"""A thin rule across the screen."""

from __future__ import annotations

from tui.draw.glyphs import Glyphs
from tui.draw.spans import Span, TextLine, fit, line


def draw_rule(text: str, width: int, glyphs: Glyphs) -> TextLine:
    """It can carry a text near its beginning."""
    told = f" {text} " if text else ""
    rest = glyphs.rule * max(0, width - len(told) - 1)
    return fit(line(Span(glyphs.rule, "faint"), Span(told, "accent"), Span(rest, "faint")), width, glyphs.more)
