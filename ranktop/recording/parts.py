"""A sample as its parts: each has its own cadence, and one that did not change since the sample before costs nothing.

Found from the type hints of `Sample`. A field that is a dict by server id is one part a server, since each server
answers in its own time; any other field is one part; the plain values of the sample itself are the part `""`.
Events are no part: each is a row of its own in the file.

A part is one msgpack value. Its structs are arrays (`array_like`), so a row names no field: fields are only ever added,
each with a default and at the end of its struct, or FORMAT goes up (tests/recording/test_fields.py).
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from ranktop.sample import Event, MetricsPage, Sample, SeriesKey

Key = tuple[str, str | None]
"""(field of `Sample`, server id or None)."""

ROOT: Key = ("", None)
EVENTS = "events"

MAX_ROW_BYTES, _MAX_PAGE_BYTES = 2 << 20, 8 << 20
"""Of one part: thousands of ranks, a page of 900,000 points. A byte of a hostile row can become 200 in memory."""


class Instant(Struct, frozen=True, array_like=True):
    """The part `""`."""

    at_unix_seconds: float
    at_monotonic_seconds: float
    host_name: str = ""


class PageRow(Struct, frozen=True, array_like=True):
    """A metrics page as a row has it: its keys stand still, and there are thousands of them.

    `keys`: the id of a row of `series`, or the keys themselves. `page` has none.
    """

    keys: int | tuple[SeriesKey, ...]
    page: MetricsPage


class PartType(NamedTuple):
    """One field of `Sample`: the type of the part, and whether there is one for every server."""

    hint: Any
    by_server: bool

    @property
    def is_page(self) -> bool:
        """Whether its row is a `PageRow`."""
        return self.hint is MetricsPage


KeysOf = Callable[[int], tuple[SeriesKey, ...]]
"""The keys of that row of `series`. Raises Damaged for an id that the file does not hold."""

encode = msgspec.msgpack.Encoder().encode


def hints_of(record: type) -> dict[str, Any]:
    """Field names and resolved hints of a Struct, in the order of the fields."""
    hints = typing.get_type_hints(record, include_extras=True)
    return {name: hints[name] for name in record.__struct_fields__}  # type: ignore[attr-defined]


@functools.cache
def part_types() -> dict[str, PartType]:
    """The parts that samples of this version have."""
    found: dict[str, PartType] = {}
    for name, hint in hints_of(Sample).items():
        if name == EVENTS or name in Instant.__struct_fields__:
            continue
        is_dict = get_origin(hint) is dict and get_args(hint)[0] is str
        found[name] = PartType(get_args(hint)[1] if is_dict else hint, is_dict)
    return found


def split(sample: Sample) -> list[tuple[Key, Any]]:
    """Every part that is there but `ROOT`. One that is None is left out."""
    found: list[tuple[Key, Any]] = []
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


instant_of = attrgetter(*Instant.__struct_fields__)
"""The plain values of a sample, which are encoded as an `Instant` is."""


def page_row(page: MetricsPage, keys: int | tuple[SeriesKey, ...]) -> bytes:
    """As a `PageRow` is encoded."""
    return encode((keys, replace(page, keys=())))


def check_size(field: str, row: bytes) -> None:
    """ValueError when it is larger than any that is read."""
    kind = part_types().get(field)
    limit = _MAX_PAGE_BYTES if kind is not None and kind.is_page else MAX_ROW_BYTES
    if len(row) > limit:
        raise ValueError(f"{field or 'sample'}: {len(row)} bytes, of at most {limit}")


def join(parts: dict[Key, Any], events: tuple[Event, ...]) -> Sample:
    """The sample of these parts, as `read` gave them. KeyError where the sample itself is missing."""
    fields: dict[str, Any] = asdict(parts[ROOT])
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


def read(field: str, row: bytes, keys_of_id: KeysOf) -> Any:
    """The value of a part; None for one that this version does not know.

    ValueError (also as msgspec.MsgspecError) when the row does not fit its type.
    """
    decode = _decoders().get(field)
    if decode is None:
        return None
    check_size(field, row)
    value = decode(row)
    if not isinstance(value, PageRow):
        return value
    keys = keys_of_id(value.keys) if isinstance(value.keys, int) else value.keys
    if len(keys) != len(value.page.values):
        raise ValueError(f"{len(value.page.values)} values for {len(keys)} series")
    return replace(value.page, keys=keys)


@functools.cache
def _decoders() -> dict[str, Callable[[bytes], Any]]:
    found: dict[str, Any] = {ROOT[0]: Instant}
    found |= {name: PageRow if kind.is_page else kind.hint for name, kind in part_types().items()}
    return {name: msgspec.msgpack.Decoder(hint).decode for name, hint in found.items()}
