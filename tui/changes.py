"""What differs between two frozen values of one type: of a verdict and the one before, little.

What was made at one second and still holds at the next is the same object, so most of both is passed over. A change is
a dict of what is changed below it, by field, key or place, or a list of one: the new value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

Change = dict[Any, Any] | list[Any]

_SINGLE = frozenset((int, float, str, bool, bytes, type(None)))


def changes(old: Any, new: Any) -> Change | None:
    """What makes `new` of `old`; None where they are equal. Compared in C, down to where something differs.

    Of a struct of plain fields (`gc=False`) all of it is the change: to look for the field takes longer.
    """
    kind = type(new)
    keys: Iterable[Any]
    if type(old) is not kind:
        return None if old == new else [new]
    if issubclass(kind, Struct) and kind.__struct_config__.gc:
        olds, news = astuple(old), astuple(new)
        keys = range(len(news)) if kind.__struct_config__.array_like else kind.__struct_fields__
    elif issubclass(kind, tuple) and len(old) == len(new):
        keys, olds, news = range(len(new)), old, new
    elif kind is dict and list(old) == list(new):
        keys, olds, news = new, old.values(), new.values()
    else:
        return None if old == new else [new]
    found: dict[Any, Any] = {}
    for key, was, now in zip(keys, olds, news, strict=True):
        if was is not now and was != now:
            found[key] = [now] if type(now) in _SINGLE else changes(was, now)
    return found or None


def changed(old: Any, change: Change) -> Any:
    """`old` with a change made in it; both as msgpack gives them: a struct is a dict or a list, a tuple a list."""
    if isinstance(change, list):
        return change[0]
    new = old.copy()
    for key, below in change.items():
        new[key] = changed(old[key], below)
    return new
