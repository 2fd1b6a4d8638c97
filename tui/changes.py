"""What differs between two frozen values of one type: of a verdict and the one before, little.

What was made at one second and still holds at the next is the same object, so most of both is passed over. A change is
a dict of what is changed below it, by field, key or place, or a list of one: the new value.
"""

from __future__ import annotations

import functools
from itertools import compress
from operator import ne
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import astuple

Change = dict[Any, Any] | list[Any]

_SINGLE = frozenset((int, float, str, bool, bytes, type(None)))


def changes(old: Any, new: Any) -> Change | None:
    """What makes `new` of `old`; None where they are equal."""
    kind = type(new)
    if type(old) is not kind:
        return None if old == new else [new]
    if issubclass(kind, Struct):
        names = kind.__struct_fields__
        was_values, values = astuple(old), astuple(new)
        if _is_flat(kind):
            differ = compress(zip(names, values, strict=True), map(ne, was_values, values))
            return {name: [value] for name, value in differ} or None
        pairs = zip(names, was_values, values, strict=True)
    elif issubclass(kind, tuple):
        if len(old) != len(new):
            return [new]
        pairs = zip(range(len(new)), old, new, strict=True)
    elif kind is dict:
        if list(old) != list(new):
            return [new]
        pairs = zip(new, old.values(), new.values(), strict=True)
    else:
        return None if old == new else [new]
    found: dict[Any, Any] = {}
    for key, was, now in pairs:
        if was is now:
            continue
        if type(now) in _SINGLE:
            if was != now:
                found[key] = [now]
        elif (change := changes(was, now)) is not None:
            found[key] = change
    return found or None


@functools.cache
def _is_flat(kind: type[Struct]) -> bool:
    """Whether its fields hold single values only: those of most verdicts do, and are compared without a loop here."""
    return not any(map(_is_nested, get_type_hints(kind).values()))


def _is_nested(hint: Any) -> bool:
    of = get_origin(hint) or hint
    return (isinstance(of, type) and issubclass(of, (Struct, tuple, dict))) or any(map(_is_nested, get_args(hint)))


def changed(old: Any, change: Change) -> Any:
    """`old` with a change made in it; both as msgpack gives them: a struct is a dict, a tuple a list."""
    if isinstance(change, list):
        return change[0]
    new = old.copy()
    for key, below in change.items():
        new[key] = changed(old[key], below)
    return new
