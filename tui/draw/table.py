"""Plain tables: fixed columns, the last text column takes what is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tui.draw.spans import Span, TextLine, fit, left, line, right

GAP = 2


class Col(NamedTuple):
    """One column. `grow` takes the rest of the width; `weight` says how soon it gives way (0: never)."""

    title: str
    width: int
    align_left: bool = False
    grow: bool = False
    weight: int = 0


Cell = Span | str


def table(
    columns: Sequence[Col], rows: Sequence[Sequence[Cell]], width: int, more: str = "…"
) -> tuple[TextLine, tuple[TextLine, ...]]:
    """Header and rows, each exactly `width` cells. Where columns do not fit, those of the largest weight go first."""
    kept = _fitting(columns, width - 1)
    spare = width - 1 - sum(columns[index].width for index in kept) - GAP * (len(kept) - 1)
    widths = {index: columns[index].width + (spare if columns[index].grow else 0) for index in kept}
    header = _row([Span(column.title, "muted") for column in columns], columns, kept, widths, width, more)
    return header, tuple(_row(row, columns, kept, widths, width, more) for row in rows)


def _fitting(columns: Sequence[Col], room: int) -> list[int]:
    kept = list(range(len(columns)))
    for index in sorted(kept, key=lambda index: -columns[index].weight):
        need = sum(columns[each].width for each in kept) + GAP * (len(kept) - 1)
        if need <= room or not columns[index].weight:
            break
        kept.remove(index)
    return kept


def _row(
    cells: Sequence[Cell],
    columns: Sequence[Col],
    kept: Sequence[int],
    widths: dict[int, int],
    width: int,
    more: str,
) -> TextLine:
    spans: list[Span | str] = [" "]
    for place, index in enumerate(kept):
        cell = cells[index]
        span = cell if isinstance(cell, Span) else Span(cell)
        fill = left(span.text, widths[index], more) if columns[index].align_left else right(span.text, widths[index])
        spans += [" " * GAP if place else "", span._replace(text=fill)]
    return fit(line(*spans), width, more)
