"""Values to flat lists, many of one layout side by side.

The function for a layout is made once, as source: a field read by its name in a plain loop takes half the time of
closures over `attrgetter`, and this runs for every part of every sample. One pass over the structs of a tuple reads all
of their fields; what these hold is gathered field by field and laid down after it. The names are fields of this
version's types; a layout from a file never comes here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from ranktop.recording.layout import Layout, Number

Flat = tuple[list[Number], list[Any], list[int]]
"""(numbers, words, shape) of one part of a sample."""

Flatten = Callable[[Any], Flat]
"""Takes a value of one layout apart."""

_LISTS = {"n": "numbers", "w": "words"}


def flattener(layout: Layout) -> Flatten:
    """The function that takes a value of this layout apart. ValueError when a name in it is no field of a type."""
    lines = [
        "def flatten(v0):",
        " numbers, words, shape = [], [], []",
        *_indented(_one(layout, "v0", map(str, count(1)))),
        " return numbers, words, shape",
    ]
    made: dict[str, Any] = {"encode": msgspec.msgpack.encode, "itemgetter": itemgetter}
    exec("\n".join(lines), made)
    return made["flatten"]


def _one(layout: Layout, value: str, names: Iterator[str]) -> Iterator[str]:
    """Statements that take apart the one value that the variable `value` holds."""
    kind, inner = _kind(layout)
    if kind == "s":
        yield from _leaves(inner, value)
        for field, child in inner["c"].items():
            name = f"v{next(names)}"
            yield f"{name} = {value}.{field}"
            yield from _one(child, name, names)
    elif kind == "o":
        yield f"if {value} is None: shape.append(0)"
        yield "else:"
        yield " shape.append(1)"
        yield from _indented(_one(inner, value, names))
    elif kind in ("t", "d"):
        yield f"shape.append(len({value}))"
        yield f"if {value}:"
        if kind == "d":
            yield f" {_LISTS[inner[0]]} += {value}"
            yield from _indented(_each(inner[1], f"{value}.values()", names))
        else:
            yield from _indented(_each(inner, value, names))
    else:
        yield from _each(layout, f"({value},)", names)


def _each(layout: Layout, values: str, names: Iterator[str]) -> Iterator[str]:
    """Statements that take apart all values of the collection `values`."""
    kind, inner = _kind(layout)
    if kind in _LISTS:
        yield f"{_LISTS[kind]} += {values}"
    elif kind == "x":
        yield f"words += map(encode, {values})"
    elif kind == "f":
        for position, leaf in enumerate(inner):
            yield f"{_LISTS[leaf]} += map(itemgetter({position}), {values})"
    elif kind == "s":
        fields = [(field, f"v{next(names)}", child) for field, child in inner["c"].items()]
        gathered = [_gathered(child, name, names) for _, name, child in fields]
        leaves = list(_leaves(inner, "v"))
        yield from (line for one in gathered for line in one.lists)
        if leaves or fields:
            yield f"for v in {values}:"
            yield from _indented(leaves)
        for (field, name, _), one in zip(fields, gathered, strict=True):
            yield f" {name} = v.{field}"
            yield from _indented(one.take)
        yield from (line for one in gathered for line in one.lay)
    else:
        name = f"v{next(names)}"
        one = _gathered(layout, name, names)
        yield from one.lists
        yield f"for {name} in {values}:"
        yield from _indented(one.take)
        yield from one.lay


class _Gathered(NamedTuple):
    """Statements: lists for the values of one field, what a loop over its owners puts there, what is done after it."""

    lists: list[str]
    take: list[str]
    lay: list[str]


def _gathered(layout: Layout, value: str, names: Iterator[str]) -> _Gathered:
    """How the values that the variable `value` holds, one after the other, are gathered and taken apart."""
    kind, inner = _kind(layout)
    if kind == "s" and not inner["c"]:
        plain = [(leaf, _LISTS[leaf], f"{value}{leaf}") for leaf in _LISTS if inner[leaf]]
        return _Gathered(
            [f"{name} = []" for _, _, name in plain],
            [f"{name} += {_fields(inner[leaf], value)}" for leaf, _, name in plain],
            [f"{end} += {name}" for _, end, name in plain],
        )
    if kind == "o":
        one = _gathered(inner, value, names)
        return _Gathered(
            [f"{value}_is = []", *one.lists],
            [f"if {value} is None: {value}_is.append(0)", "else:", f" {value}_is.append(1)", *_indented(one.take)],
            [f"shape += {value}_is", *one.lay],
        )
    if kind in ("t", "d"):
        lists, take, lay = [f"{value}_len = []"], [f"{value}_len.append(len({value}))"], [f"shape += {value}_len"]
        held = value
        if kind == "d":
            lists.append(f"{value}_keys = []")
            take.append(f"{value}_keys += {value}")
            lay.append(f"{_LISTS[inner[0]]} += {value}_keys")
            inner, held = inner[1], f"{value}.values()"
        lists.append(f"{value}_all = []")
        take.append(f"{value}_all += {held}")
    else:
        lists, take, lay = [f"{value}_all = []"], [f"{value}_all.append({value})"], []
        inner = layout
    lay += [f"if {value}_all:", *_indented(_each(inner, f"{value}_all", names))]
    return _Gathered(lists, take, lay)


def _leaves(inner: dict[str, Any], value: str) -> Iterator[str]:
    """The numbers and words of a struct itself."""
    if not all(map(str.isidentifier, inner["c"])):
        raise ValueError("a field without a name")
    for leaf, end in _LISTS.items():
        if inner[leaf]:
            yield f"{end} += {_fields(inner[leaf], value)}"


def _fields(fields: list[str], value: str) -> str:
    if not all(map(str.isidentifier, fields)):
        raise ValueError("a field without a name")
    return f"({' '.join(f'{value}.{field},' for field in fields)})"


def _kind(layout: Layout) -> tuple[str, Any]:
    return (layout, None) if isinstance(layout, str) else next(iter(layout.items()))


def _indented(lines: Iterator[str] | list[str]) -> Iterator[str]:
    return (f" {line}" for line in lines)
