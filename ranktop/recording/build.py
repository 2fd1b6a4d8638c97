"""Flat lists back to values, as builtins that `msgspec.convert` takes: the inverse of flatten.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, repeat
from typing import Any

import msgspec

from ranktop.recording.layout import Layout, Number

MAX_ITEMS = 2_000_000
"""Values of one part of a sample, so that a hostile shape cannot fill the memory."""


class Source:
    """The three lists of one part, read from the front."""

    __slots__ = ("_left", "numbers", "shape", "words")

    def __init__(self, numbers: list[Number], words: list[Any], shape: list[int]) -> None:
        self.numbers = iter(numbers)
        self.words = iter(words)
        self.shape = iter(shape)
        self._left = MAX_ITEMS

    def lengths(self, count: int) -> list[int]:
        """The next lengths. ValueError when they cannot be true."""
        lengths = taken(self.shape, count)
        total = sum(lengths)
        self._left -= total
        if self._left < 0 or min(lengths, default=0) < 0:
            raise ValueError(f"{total} values in all")
        return lengths

    def flags(self, count: int) -> list[int]:
        """The next zeros and ones. ValueError when they are neither."""
        flags = taken(self.shape, count)
        if not {*flags} <= {0, 1}:
            raise ValueError("a value that is there more than once")
        return flags


Build = Callable[[Source, int], list[Any]]
"""Builds so many values of one layout. ValueError or TypeError when the lists do not hold them."""


def taken(source: Iterator[Any], count: int) -> list[Any]:
    """The next values. ValueError when there are fewer."""
    found = list(islice(source, count))
    if len(found) < count:
        raise ValueError("fewer values than the shape says")
    return found


def builder(layout: Layout) -> Build:
    """The function that puts values of this layout together again."""
    if layout == "n":
        return lambda source, count: taken(source.numbers, count)
    if layout == "w":
        return lambda source, count: taken(source.words, count)
    if layout == "x":
        return lambda source, count: list(map(msgspec.msgpack.decode, taken(source.words, count)))
    ((kind, inner),) = layout.items()
    return _BUILDERS[kind](inner)


def _optional(inner: Layout) -> Build:
    build = builder(inner)

    def optional(source: Source, count: int) -> list[Any]:
        flags = source.flags(count)
        there = build(source, sum(flags))
        if len(there) == count:
            return there
        left = iter(there)
        return [next(left) if flag else None for flag in flags]

    return optional


def _tuple(inner: Layout) -> Build:
    build = builder(inner)

    def tuples(source: Source, count: int) -> list[Any]:
        lengths = source.lengths(count)
        items = build(source, sum(lengths))
        if count == 1:
            return [items]
        left = iter(items)
        return [list(islice(left, length)) for length in lengths]

    return tuples


def _fixed(inner: list[str]) -> Build:
    def fixed(source: Source, count: int) -> list[Any]:
        columns = [taken(source.numbers if leaf == "n" else source.words, count) for leaf in inner]
        return list(zip(*columns, strict=True))

    return fixed


def _dict(inner: list[Layout]) -> Build:
    key, build = inner[0], builder(inner[1])

    def dicts(source: Source, count: int) -> list[Any]:
        lengths = source.lengths(count)
        total = sum(lengths)
        keys = taken(source.numbers if key == "n" else source.words, total)
        pairs = iter(list(zip(keys, build(source, total), strict=True)))
        return [dict(islice(pairs, length)) for length in lengths]

    return dicts


def _struct(inner: dict[str, Any]) -> Build:
    numbers, words = len(inner["n"]), len(inner["w"])
    names = [*inner["n"], *inner["w"]]
    parts = [(name, builder(layout)) for name, layout in inner["c"].items()]

    def structs(source: Source, count: int) -> list[Any]:
        if names:
            # zip takes a row at a time from the one iterator that stands in several of its places.
            number = iter(taken(source.numbers, count * numbers))
            word = iter(taken(source.words, count * words))
            rows = zip(*repeat(number, numbers), *repeat(word, words), strict=True)
            values = [dict(zip(names, row, strict=True)) for row in rows]
        else:
            values = [{} for _ in range(count)]
        for name, build in parts:
            for value, field in zip(values, build(source, count), strict=True):
                value[name] = field
        return values

    return structs


_BUILDERS: dict[str, Callable[[Any], Build]] = {
    "o": _optional,
    "t": _tuple,
    "f": _fixed,
    "d": _dict,
    "s": _struct,
}
