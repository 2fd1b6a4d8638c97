"""Blocks of lines beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from tui.draw.spans import Span, TextLine, fit, line


def beside(blocks: Sequence[tuple[Sequence[TextLine], int]], more: str, gap: int = 2) -> tuple[TextLine, ...]:
    """Blocks of given widths in one row; the shorter ones are filled up with blanks."""
    height = max((len(block) for block, _ in blocks), default=0)
    rows: list[TextLine] = []
    for number in range(height):
        parts: list[Span | str] = []
        for place, (block, width) in enumerate(blocks):
            if place:
                parts.append(" " * gap)
            parts.extend(fit(block[number] if number < len(block) else (), width, more))
        rows.append(line(*parts))
    return tuple(rows)
