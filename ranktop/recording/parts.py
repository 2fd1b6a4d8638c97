"""A sample as its parts: each has its own cadence, and one that did not change since the sample before costs nothing.

Found from the type hints of `Sample`. A field that is a dict by server id is one part a server, since each server
answers in its own time; any other field is one part; the plain values of the sample itself are the part `""`.
Events are no part: each is a row of its own in the file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple, get_args, get_origin

import msgspec

from ranktop.recording.flatten import Flatten, flattener
from ranktop.recording.layout import Layout, hints_of, layout_of
from ranktop.sample import Event, Sample

Key = tuple[str, str | None]
"""(field of `Sample`, server id or None)."""

ROOT: Key = ("", None)
EVENTS = "events"


class PartType(NamedTuple):
    """One field of `Sample`: the type of the part, how it is taken apart, and whether there is one for every server."""

    hint: Any
    layout: Layout
    flatten: Flatten
    by_server: bool


@functools.cache
def part_types() -> dict[str, PartType]:
    """The parts that samples of this version have."""
    found: dict[str, PartType] = {}
    for name, hint in hints_of(Sample).items():
        if name == EVENTS or name in root_fields():
            continue
        if get_origin(hint) is dict and get_args(hint)[0] is str:
            value = get_args(hint)[1]
            found[name] = PartType(value, layout_of(value), flattener(layout_of(value)), True)
        else:
            found[name] = PartType(hint, layout_of(hint), flattener(layout_of(hint)), False)
    return found


@functools.cache
def root_fields() -> dict[str, str]:
    """Plain fields of the sample itself, with their layout."""
    layouts = {name: layout_of(hint) for name, hint in hints_of(Sample).items()}
    return {name: layout for name, layout in layouts.items() if layout in ("n", "w")}


@functools.cache
def root_layout() -> Layout:
    """The layout of the part `""`."""
    fields = root_fields()
    numbers = [name for name, layout in fields.items() if layout == "n"]
    words = [name for name, layout in fields.items() if layout == "w"]
    return {"s": {"n": numbers, "w": words, "c": {}}}


def split(sample: Sample) -> list[tuple[Key, Any]]:
    """Every part that is there, the sample itself first. A part that is None is left out."""
    found: list[tuple[Key, Any]] = [(ROOT, sample)]
    keys, values_of = _fields()
    for (key, by_server), value in zip(keys, values_of(sample), strict=True):
        if not by_server:
            if value is not None:
                found.append((key, value))
        elif value:
            for server, part in value.items():
                found.append(((key[0], server), part))
    return found


@functools.cache
def _fields() -> tuple[list[tuple[Key, bool]], Callable[[Sample], tuple[Any, ...]]]:
    """The keys of parts, whether there is one for every server, and what reads their fields in that order."""
    return [((name, None), kind.by_server) for name, kind in part_types().items()], attrgetter(*part_types())


def join(parts: dict[Key, Any], events: tuple[Event, ...]) -> Sample:
    """The sample of these parts, as `typed` made them. msgspec.ValidationError where a required part is missing."""
    fields: dict[str, Any] = dict(parts[ROOT])
    known = part_types()
    for (name, server), value in parts.items():
        kind = known.get(name)
        if kind is None:
            continue
        if kind.by_server and server is not None:
            fields.setdefault(name, {})[server] = value
        else:
            fields[name] = value
    fields[EVENTS] = events
    return Sample(**fields)


def words_of(key: Key, value: Any, layout: Layout) -> list[Any]:
    """The words of a value that `typed` made; none when the part has another layout than that in this version."""
    kind = part_types().get(key[0])
    if kind is None or kind.layout != layout:
        return []
    _, words, _ = kind.flatten(value)
    return words


def typed(key: Key, value: Any) -> Any:
    """Builtins as the type that this version has for that part; fields it does not know are left out.

    msgspec.ValidationError when a value does not fit. Parts that this version does not know stay as they are.
    """
    if key == ROOT:
        hints = hints_of(Sample)
        return {name: msgspec.convert(field, hints[name]) for name, field in value.items() if name in root_fields()}
    kind = part_types().get(key[0])
    return value if kind is None else msgspec.convert(value, kind.hint)
