"""How the values of a type lie in flat lists: found from its type hints, so that a new field needs no line here.

A value becomes numbers (int, float, bool or None), words (text, None, or a Struct that holds only text) and a shape
(lengths of tuples and dicts, 1 or 0 for a value that may be missing). Free JSON is one word, in msgpack. The layout,
plain data, is stored beside them: a file is read by the layout it was written with, whatever the types are by then.

Layouts: `n` a number, `w` a word, `x` free JSON, `{"t": item}` a tuple, `{"f": [leaf, ...]}` a tuple of fixed
length, `{"d": [key, value]}` a dict, `{"o": layout}` one that may be None, and for a Struct
`{"s": {"n": names, "w": names, "c": {name: layout}}}`: first its numbers, then its words, then all other fields.

Many values of one layout lie side by side: first the numbers of all, then the words of all, then field by field the
inner values of all (flatten.py, build.py).
"""

from __future__ import annotations

import functools
import types
import typing
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec import Struct

Layout = Any
Number = int | float | bool | None


@functools.cache
def layout_of(hint: Any) -> Layout:
    """The layout of a type."""
    hint = _plain(hint)
    kind = _leaf(hint)
    if kind is not None:
        return kind
    origin, args = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        some = [arg for arg in args if arg is not type(None)]
        return {"o": layout_of(some[0])} if len(some) == 1 else "x"
    if origin is tuple and len(args) == 2 and args[1] is ...:
        return {"t": layout_of(args[0])}
    if origin is tuple and args and all(_leaf(_plain(arg)) for arg in args):
        return {"f": [layout_of(arg) for arg in args]}
    if origin is dict and _leaf(_plain(args[0])) and _has_structs(args[1]):
        return {"d": [layout_of(args[0]), layout_of(args[1])]}
    if isinstance(hint, type) and issubclass(hint, Struct):
        fields = {name: layout_of(kind) for name, kind in hints_of(hint).items()}
        return {
            "s": {
                "n": [name for name, layout in fields.items() if layout == "n"],
                "w": [name for name, layout in fields.items() if layout == "w"],
                "c": {name: layout for name, layout in fields.items() if layout not in ("n", "w")},
            }
        }
    return "x"


@functools.cache
def hints_of(record: type) -> dict[str, Any]:
    """Field names and resolved hints of a Struct, in the order of the fields."""
    hints = typing.get_type_hints(record, include_extras=True)
    return {name: hints[name] for name in record.__struct_fields__}  # type: ignore[attr-defined]


def _plain(hint: Any) -> Any:
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return hint


def _leaf(hint: Any) -> str | None:
    """`n`, `w`, or None for what has parts."""
    if hint in (int, float, bool, type(None)):
        return "n"
    if hint is str or get_origin(hint) is Literal:
        return "w"
    if isinstance(hint, type) and issubclass(hint, Struct):
        return "w" if _only_text(hint) else None
    if get_origin(hint) in (typing.Union, types.UnionType):
        kinds = {_leaf(_plain(arg)) for arg in get_args(hint) if arg is not type(None)}
        return kinds.pop() if len(kinds) == 1 else None
    return None


def _only_text(hint: Any) -> bool:
    hint = _plain(hint)
    if hint is str or hint is ...:
        return True
    if isinstance(hint, type) and issubclass(hint, Struct):
        return all(map(_only_text, hints_of(hint).values()))
    return get_origin(hint) is tuple and all(map(_only_text, get_args(hint)))


def _has_structs(hint: Any) -> bool:
    hint = _plain(hint)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return True
    return get_origin(hint) is tuple and any(map(_has_structs, get_args(hint)))
