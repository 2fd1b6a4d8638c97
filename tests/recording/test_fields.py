"""Rows name no fields: a file of today is read tomorrow if fields are only added, each at the end and with a default.

`fields.txt` holds the fields of format 7. Add a new one to its line; anything else needs a new FORMAT.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from ranktop.recording.parts import Instant, PageRow, encode, part_types, read
from ranktop.recording.tables import FORMAT
from ranktop.sample import Host, SourceState

KNOWN = dict(line.split(": ", 1) for line in (Path(__file__).parent / "fields.txt").read_text().splitlines())


def structs(hint: Any) -> Iterator[type[Struct]]:
    """All types of a hint that are encoded as they stand."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
        for field in fields(hint):
            yield from structs(field.type)
    for inner in get_args(hint):
        yield from structs(inner)


TYPES = sorted(
    {found for hint in (Instant, PageRow, *(kind.hint for kind in part_types().values())) for found in structs(hint)},
    key=lambda found: found.__name__,
)


def test_the_fields_are_those_of_this_format() -> None:
    assert FORMAT == 7
    assert [record.__name__ for record in TYPES] == list(KNOWN)


@pytest.mark.parametrize("record", TYPES, ids=lambda record: record.__name__)
def test_fields_are_added_at_the_end_with_a_default(record: type[Struct]) -> None:
    assert record.__struct_config__.array_like
    known = KNOWN[record.__name__].split()
    names = [field.name for field in fields(record)]
    assert names[: len(known)] == known
    for field in fields(record)[len(known) :]:
        assert field.default is not NODEFAULT or field.default_factory is not NODEFAULT, field.name


def test_a_row_of_an_older_and_of_a_younger_version() -> None:
    newest = Host(total_bytes=5, free_bytes=4)
    row: list[Any] = msgspec.msgpack.decode(encode(newest))
    assert read("host", encode([*row, "what comes later"]), {}.__getitem__) == newest
    assert read("host", encode(row[:1]), {}.__getitem__) == Host(source=row[0])
    assert read("sources", encode([["nvml", "ok"]]), {}.__getitem__) == (SourceState("nvml", "ok"),)
