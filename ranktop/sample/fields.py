"""What a field means, written beside the field.

Column titles, CSV headers, the help of exported metrics and the help screen all come from here, so that a number has
one name and one unit wherever it shows.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

Kind = Literal["gauge", "counter", "label"]


class Field(NamedTuple):
    """Metadata of one field of a sample. `width` is the number of cells a column of it needs."""

    title: str
    unit: str
    kind: Kind
    width: int
    help: str


def gauge(title: str, unit: str, width: int, help: str) -> Field:
    """A value that goes up and down."""
    return Field(title, unit, "gauge", width, help)


def counter(title: str, unit: str, width: int, help: str) -> Field:
    """A value that only grows, until its owner restarts."""
    return Field(title, unit, "counter", width, help)


def label(title: str, width: int, help: str) -> Field:
    """What the numbers belong to: a name, an id, a state."""
    return Field(title, "", "label", width, help)


@functools.cache
def fields_of(record: type) -> dict[str, Field]:
    """The metadata of every annotated field of a sample type, in the order of the fields."""
    found: dict[str, Field] = {}
    for name, hint in get_type_hints(record, include_extras=True).items():
        for extra in _extras(hint):
            if isinstance(extra, Field):
                found[name] = extra
    return found


def _extras(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()
