"""The columns of the rank grid as the configuration has them: which, in what order, how wide, and how heavy."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from tui.views.columns import Column, rank_columns

_WIDEST = 80
"""Nobody wants a wider column, and a typing error is told as one."""
_HEAVIEST = 100


class ColumnsError(ValueError):
    """Columns that cannot be shown: one line that names the one and what is accepted."""


class Wanted(NamedTuple):
    """`name`, `name:cells`, `name:cells:weight` or `name::weight`, taken apart. None: as the column has it.

    A `+` behind the cells, or in their place: it takes what is left of the width.
    """

    key: str
    cells: str | None
    weight: str | None
    grows: bool


def taken_apart(text: str) -> Wanted:
    """Whatever stands there; whether it can be used is for `check_columns` to say."""
    key, colon, rest = text.partition(":")
    cells, second, weight = rest.partition(":")
    grows = cells.endswith("+")
    cells = cells.removesuffix("+")
    says_width = bool(cells) or (bool(colon) and not second and not grows)
    return Wanted(key, cells if says_width else None, weight if second else None, grows)


def chosen(columns: Sequence[Column], wanted: Sequence[str]) -> tuple[Column, ...]:
    """The columns that are wanted, in their order; all if none is. `wanted` has passed `check_columns`."""
    by_key = {column.key: column for column in columns}
    found: list[Column] = []
    for key, cells, weight, grows in map(taken_apart, wanted):
        column = by_key[key]
        found.append(
            replace(
                column,
                width=column.width if cells is None else int(cells),
                weight=column.weight if weight is None else int(weight),
                grows=grows,
            )
        )
    return tuple(found) or tuple(columns)


def check_columns(wanted: Sequence[str]) -> None:
    """ColumnsError for a name that is no column, or is there twice, and for a width or weight that cannot be."""
    known = {column.key: column for column in rank_columns(4)}
    keys: list[str] = []
    for text in wanted:
        key, cells, weight, _ = taken_apart(text)
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            raise ColumnsError(f"{key} is no column ({f'did you mean {near[0]}?' if near else ', '.join(known)})")
        if key in keys:
            raise ColumnsError(f"{key} is there twice")
        least = known[key].least or known[key].width
        if cells is not None and not _is_within(cells, least, _WIDEST):
            raise ColumnsError(f"{text!r}: {key} can be {least} to {_WIDEST} cells wide, like {key}:{max(least, 12)}")
        if weight is not None and not _is_within(weight, 0, _HEAVIEST):
            like = f"{key}:{cells or ''}:{known[key].weight}"
            raise ColumnsError(f"{text!r}: a weight is 0 to {_HEAVIEST} (the heaviest stay longest), like {like}")
        keys.append(key)


def _is_within(digits: str, least: int, most: int) -> bool:
    return digits.isascii() and digits.isdigit() and len(digits) < 4 and least <= int(digits) <= most
