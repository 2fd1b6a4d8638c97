"""Values to flat lists, many of one layout side by side.

The function for a layout is made once, as source: a field read by its name in a plain loop takes half the time of
closures over `attrgetter`, and this runs for every part of every sample. The names are fields of this version's types;
a layout from a file never comes here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import count
from operator import itemgetter
from typing import Any

import msgspec

from ranktop.recording.layout import Layout, Number


class Flat:
    """One part of a sample, taken apart."""

    __slots__ = ("numbers", "shape", "words")

    def __init__(self) -> None:
        self.numbers: list[Number] = []
        self.words: list[Any] = []
        self.shape: list[int] = []


Flatten = Callable[[Collection[Any], Flat], None]
"""Takes values of one layout apart, side by side."""


def flattener(layout: Layout) -> Flatten:
    """The function that takes values of this layout apart. ValueError when a name in it is no field of a type."""
    names = (f"v{number}" for number in count(1))
    lines = [
        "def flatten(v0, flat):",
        " numbers, words, shape = flat.numbers.extend, flat.words.extend, flat.shape.extend",
        *(f" {line}" for line in _lines(layout, "v0", names)),
    ]
    made: dict[str, Any] = {"encode": msgspec.msgpack.encode, "itemgetter": itemgetter}
    exec("\n".join(lines), made)
    return made["flatten"]


def _lines(layout: Layout, values: str, names: Iterator[str]) -> Iterator[str]:
    """Statements that take apart what the variable `values` holds: at least one value."""
    if isinstance(layout, str):
        yield {"n": f"numbers({values})", "w": f"words({values})", "x": f"words(map(encode, {values}))"}[layout]
        return
    ((kind, inner),) = layout.items()
    if kind == "s":
        yield from _struct(inner, values, names)
        return
    if kind == "f":
        for position, leaf in enumerate(inner):
            yield f"{_list(leaf)}(map(itemgetter({position}), {values}))"
        return
    name = next(names)
    if kind == "o":
        yield f"shape([0 if v is None else 1 for v in {values}])"
        yield f"{name} = [v for v in {values} if v is not None]"
    elif kind == "t":
        yield f"shape(map(len, {values}))"
        yield f"{name} = {values}[0] if len({values}) == 1 else [item for v in {values} for item in v]"
    else:
        yield f"shape(map(len, {values}))"
        yield f"{_list(inner[0])}([key for v in {values} for key in v])"
        yield f"{name} = [item for v in {values} for item in v.values()]"
        inner = inner[1]
    yield f"if {name}:"
    yield from (f" {line}" for line in _lines(inner, name, names))


def _struct(inner: dict[str, Any], values: str, names: Iterator[str]) -> Iterator[str]:
    if not all(name.isidentifier() for name in (*inner["n"], *inner["w"], *inner["c"])):
        raise ValueError("a field without a name")
    if inner["n"] or inner["w"]:
        yield f"for v in {values}:"
        for leaf in ("n", "w"):
            if inner[leaf]:
                yield f" {_list(leaf)}(({' '.join(f'v.{name},' for name in inner[leaf])}))"
    for field, layout in inner["c"].items():
        name = next(names)
        yield f"{name} = [v.{field} for v in {values}]"
        yield from _lines(layout, name, names)


def _list(leaf: str) -> str:
    return "numbers" if leaf == "n" else "words"
