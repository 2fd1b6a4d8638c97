"""How the values of a type lie in flat lists: found from its type hints, so that a new field needs no line here.

A value becomes numbers (int, float, bool or None), words (text, None, or a Struct that holds only text) and a shape
(lengths of tuples and dicts, 1 or 0 for a Struct that may be missing). Free JSON is one word, in msgpack. The layout,
plain data, is stored beside them: a file is read by the layout it was written with, whatever the types are by then.

Layouts: `n` a number, `w` a word, `x` free JSON, `{"t": item}` a tuple, `{"f": [leaf, ...]}` a tuple of fixed
length, `{"d": [key, value]}` a dict, `{"o": layout}` one that may be None, and for a Struct
`{"s": {"n": names, "w": names, "c": {name: layout}}}`: first its numbers, then its words, then all other fields.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Iterator
from itertools import chain, islice
from operator import attrgetter, itemgetter
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

Layout = Any
Number = int | float | bool | None

MAX_ITEMS = 2_000_000
"""Values of one part of a sample, so that a hostile shape cannot fill the memory."""


class Flat:
    """One part of a sample, taken apart."""

    __slots__ = ("numbers", "shape", "words")

    def __init__(self) -> None:
        self.numbers: list[Number] = []
        self.words: list[Any] = []
        self.shape: list[int] = []


Flatten = Callable[[Any, Flat], None]
Build = Callable[["Source"], Any]


class Source:
    """The three lists of one part, read from the front."""

    __slots__ = ("_left", "numbers", "shape", "words")

    def __init__(self, numbers: list[Number], words: list[Any], shape: list[int]) -> None:
        self.numbers = iter(numbers)
        self.words = iter(words)
        self.shape = iter(shape)
        self._left = MAX_ITEMS

    def length(self) -> int:
        """The next length. ValueError when it cannot be true."""
        length = next(self.shape)
        self._left -= length
        if length < 0 or self._left < 0:
            raise ValueError(f"a length of {length}")
        return length


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


def flattener(layout: Layout) -> Flatten:
    """The function that takes a value of this layout apart."""
    if layout == "n":
        return lambda value, flat: flat.numbers.append(value)
    if layout == "w":
        return lambda value, flat: flat.words.append(value)
    if layout == "x":
        return lambda value, flat: flat.words.append(msgspec.msgpack.encode(value))
    ((kind, inner),) = layout.items()
    return _FLATTENERS[kind](inner)


def builder(layout: Layout) -> Build:
    """The function that puts a value together again, as builtins that `msgspec.convert` takes."""
    if layout == "n":
        return lambda source: next(source.numbers)
    if layout == "w":
        return lambda source: next(source.words)
    if layout == "x":
        return lambda source: msgspec.msgpack.decode(next(source.words))
    ((kind, inner),) = layout.items()
    return _BUILDERS[kind](inner)


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


def _columns(layout: Layout) -> list[str] | None:
    """The leaves of a fixed tuple: a tuple of such is laid column by column."""
    return layout["f"] if isinstance(layout, dict) and "f" in layout else None


def _flatten_optional(inner: Layout) -> Flatten:
    flatten = flattener(inner)

    def optional(value: Any, flat: Flat) -> None:
        flat.shape.append(int(value is not None))
        if value is not None:
            flatten(value, flat)

    return optional


def _flatten_tuple(inner: Layout) -> Flatten:
    leaves = _columns(inner)
    if leaves is not None or inner in ("n", "w"):

        def columns(value: Any, flat: Flat) -> None:
            flat.shape.append(len(value))
            if leaves is None:
                (flat.numbers if inner == "n" else flat.words).extend(value)
                return
            for position, leaf in enumerate(leaves):
                (flat.numbers if leaf == "n" else flat.words).extend(map(itemgetter(position), value))

        return columns
    if "s" in inner and not inner["s"]["c"]:
        return _flatten_records(inner["s"])
    flatten = flattener(inner)

    def items(value: Any, flat: Flat) -> None:
        flat.shape.append(len(value))
        for item in value:
            flatten(item, flat)

    return items


def _flatten_records(inner: dict[str, Any]) -> Flatten:
    """Structs of plain fields, all at once and without a Python loop."""
    numbers, words = _getter(inner["n"]), _getter(inner["w"])

    def records(value: Any, flat: Flat) -> None:
        flat.shape.append(len(value))
        flat.numbers.extend(chain.from_iterable(map(numbers, value)))
        flat.words.extend(chain.from_iterable(map(words, value)))

    return records


def _flatten_fixed(inner: list[str]) -> Flatten:
    def fixed(value: Any, flat: Flat) -> None:
        for leaf, part in zip(inner, value, strict=True):
            (flat.numbers if leaf == "n" else flat.words).append(part)

    return fixed


def _flatten_dict(inner: list[Layout]) -> Flatten:
    key, values = inner[0], _flatten_tuple(inner[1])

    def pairs(value: Any, flat: Flat) -> None:
        flat.shape.append(len(value))
        (flat.numbers if key == "n" else flat.words).extend(value)
        values(value.values(), flat)

    return pairs


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if not names:
        return lambda value: ()
    if len(names) == 1:
        name = names[0]
        return lambda value: (getattr(value, name),)
    return attrgetter(*names)


def _flatten_struct(inner: dict[str, Any]) -> Flatten:
    numbers, words = _getter(inner["n"]), _getter(inner["w"])
    parts = [(name, flattener(layout)) for name, layout in inner["c"].items()]

    def fields(value: Any, flat: Flat) -> None:
        flat.numbers.extend(numbers(value))
        flat.words.extend(words(value))
        for name, flatten in parts:
            flatten(getattr(value, name), flat)

    return fields


def _list(leaf: str, source: Source) -> Iterator[Any]:
    return source.numbers if leaf == "n" else source.words


def _build_optional(inner: Layout) -> Build:
    build = builder(inner)
    return lambda source: build(source) if source.length() else None


def _build_tuple(inner: Layout) -> Build:
    leaves = _columns(inner)
    if leaves is not None or inner in ("n", "w"):

        def columns(source: Source) -> Any:
            length = source.length()
            taken = [list(islice(_list(leaf, source), length)) for leaf in (leaves or inner)]
            if any(len(column) < length for column in taken):
                raise ValueError("fewer values than the shape says")
            return list(zip(*taken, strict=True)) if leaves else taken[0]

        return columns
    build = builder(inner)
    return lambda source: [build(source) for _ in range(source.length())]


def _build_fixed(inner: list[str]) -> Build:
    return lambda source: [next(_list(leaf, source)) for leaf in inner]


def _build_dict(inner: list[Layout]) -> Build:
    key, values = inner[0], _build_tuple(inner[1])

    def pairs(source: Source) -> Any:
        keys = list(islice(_list(key, source), source.length()))
        return dict(zip(keys, values(source), strict=True))

    return pairs


def _build_struct(inner: dict[str, Any]) -> Build:
    numbers, words = inner["n"], inner["w"]
    leaves = len(numbers) + len(words)
    parts = [(name, builder(layout)) for name, layout in inner["c"].items()]

    def fields(source: Source) -> Any:
        value = dict(zip(numbers, source.numbers, strict=False))
        value.update(zip(words, source.words, strict=False))
        if len(value) < leaves:
            raise ValueError("fewer values than fields")
        for name, build in parts:
            value[name] = build(source)
        return value

    return fields


_FLATTENERS: dict[str, Callable[[Any], Flatten]] = {
    "o": _flatten_optional,
    "t": _flatten_tuple,
    "f": _flatten_fixed,
    "d": _flatten_dict,
    "s": _flatten_struct,
}
_BUILDERS: dict[str, Callable[[Any], Build]] = {
    "o": _build_optional,
    "t": _build_tuple,
    "f": _build_fixed,
    "d": _build_dict,
    "s": _build_struct,
}
