"""What differs between two frozen values of one type: of a verdict and the one before, little.

What was made at one second and still holds at the next is the same object, so most of both is passed over. A change is
a dict of what is changed below it, by field, key or place, or a list of one: the new value.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
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
    if type(old) is kind:
        if (fields := _fields(kind)) is not None:
            return _differing(fields, astuple(old), astuple(new))
        if issubclass(kind, tuple) and len(old) == len(new):
            return _differing(range(len(new)), old, new)
        if kind is dict and list(old) == list(new):
            return _differing(new, old.values(), new.values())
    return None if old == new else [new]


def _differing(keys: Iterable[Any], olds: Iterable[Any], news: Iterable[Any]) -> Change | None:
    found: dict[Any, Any] = {}
    for key, was, now in zip(keys, olds, news, strict=True):
        if was is not now and was != now:
            found[key] = [now] if _is_whole(type(now)) else changes(was, now)
    return found or None


@functools.cache
def _is_whole(kind: type) -> bool:
    """Whether a value of this type that differs is the change."""
    return kind in _SINGLE or (issubclass(kind, Struct) and _fields(kind) is None)


@functools.cache
def _fields(kind: type) -> Sequence[Any] | None:
    """What msgpack tells the fields of a struct by; None for one of plain fields and for what is no struct."""
    if not issubclass(kind, Struct) or not kind.__struct_config__.gc:
        return None
    return range(len(kind.__struct_fields__)) if kind.__struct_config__.array_like else kind.__struct_fields__


def changed(old: Any, change: Change) -> Any:
    """`old` with a change made in it; both as msgpack gives them: a struct is a dict or a list, a tuple a list."""
    if isinstance(change, list):
        return change[0]
    new = old.copy()
    for key, below in change.items():
        new[key] = changed(old[key], below)
    return new
