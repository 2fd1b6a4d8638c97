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


class Table:
    """Columns laid out for a width, where rows are drawn one by one. Each line is exactly `width` cells."""

    def __init__(self, columns: Sequence[Col], width: int, more: str) -> None:
        """Where columns do not fit, those of the largest weight go first."""
        self._columns, self._width, self._more = columns, width, more
        self._kept = _fitting(columns, width - 1)
        spare = width - 1 - sum(columns[index].width for index in self._kept) - GAP * (len(self._kept) - 1)
        self._widths = {index: columns[index].width + (spare if columns[index].grow else 0) for index in self._kept}

    @property
    def header(self) -> TextLine:
        return self.row([Span(column.title, "muted") for column in self._columns])

    def room_of(self, title: str) -> int:
        """Cells of a column by its title; 0 where it is not shown."""
        return next((width for index, width in self._widths.items() if self._columns[index].title == title), 0)

    def row(self, cells: Sequence[Cell]) -> TextLine:
        """One cell a column, also for those that are not shown."""
        spans: list[Span | str] = [" "]
        for place, index in enumerate(self._kept):
            cell, width = cells[index], self._widths[index]
            span = cell if isinstance(cell, Span) else Span(cell)
            is_left = self._columns[index].align_left
            fill = left(span.text, width, self._more) if is_left else right(span.text, width)
            spans += [" " * GAP if place else "", span._replace(text=fill)]
        return fit(line(*spans), self._width, self._more)


def table(
    columns: Sequence[Col], rows: Sequence[Sequence[Cell]], width: int, more: str
) -> tuple[TextLine, tuple[TextLine, ...]]:
    """Header and rows, each exactly `width` cells. Where columns do not fit, those of the largest weight go first."""
    drawn = Table(columns, width, more)
    return drawn.header, tuple(drawn.row(row) for row in rows)


def _fitting(columns: Sequence[Col], room: int) -> list[int]:
    kept = list(range(len(columns)))
    for index in sorted(kept, key=lambda index: -columns[index].weight):
        need = sum(columns[each].width for each in kept) + GAP * (len(kept) - 1)
        if need <= room or not columns[index].weight:
            break
        kept.remove(index)
    return kept
