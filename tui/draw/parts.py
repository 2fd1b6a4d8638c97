"""One line of parts, each of them whole or not there: half a number is worse than none."""

from __future__ import annotations

from collections.abc import Sequence

from tui.draw.spans import Span, TextLine, fit, line
from tui.draw.spans import width as cells_of

SEPARATOR = "   "

Part = Sequence[Span | str]


def whole_parts(parts: Sequence[Part], width: int, more: str) -> TextLine:
    """As many parts as fit, in their order; the first is always there. `more` at the end says that some are not."""
    drawn = [line(*part) for part in parts]
    shown: list[Span | str] = list(drawn[0]) if drawn else []
    room = width - cells_of(drawn[0]) if drawn else width
    for place, part in enumerate(drawn[1:], start=1):
        need = cells_of(part) + len(SEPARATOR)
        last = place == len(drawn) - 1
        if need > room - (0 if last else len(more) + 1):
            shown.append(Span(f" {more}", "muted"))
            break
        shown += [SEPARATOR, *part]
        room -= need
    return fit(line(*shown), width, more)
