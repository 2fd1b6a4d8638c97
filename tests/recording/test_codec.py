"""Samples to rows and back: every field of every type, whatever it holds."""

from __future__ import annotations

import zlib

import msgspec
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from ranktop.recording.alike import Rows, pack
from ranktop.recording.build import Source, builder
from ranktop.recording.decoder import OpenChunk, PartValues, read_tail, tail_parts
from ranktop.recording.encoder import Encoder
from ranktop.recording.errors import Damaged
from ranktop.recording.flatten import flattener
from ranktop.recording.layout import layout_of
from ranktop.recording.schema import KnownSchema
from ranktop.sample import (
    Cgroup,
    Event,
    Gpus,
    Host,
    NumaNode,
    Placement,
    Processes,
    RequestRecord,
    Sample,
    ServerInfo,
    SourceState,
)
from recording.node import SyntheticNode

NUMBERS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 64) - 1),
    st.floats(allow_nan=False),
)


class Recorder:
    """An encoder with its schemas, its tail rows and the chunk of all samples."""

    def __init__(self, samples: list[Sample]) -> None:
        encoder = Encoder()
        self.schemas: dict[int, KnownSchema] = {}
        self.tails: list[bytes] = []
        for seq, sample in enumerate(samples, start=1):
            tail, new = encoder.add(sample, seq)
            self.tails.append(tail)
            self.schemas |= {schema.id: KnownSchema(schema.data) for schema in new}
        chunk, self.used = encoder.take_chunk()
        self.chunk = zlib.compress(msgspec.msgpack.encode(chunk))

    def from_tail(self) -> list[Sample]:
        values = PartValues(self.schemas.__getitem__)
        tails = {seq: tail_parts(tail) for seq, tail in enumerate(self.tails, start=1)}
        return [read_tail(seq, tails.__getitem__, values) for seq in tails]

    def from_chunk(self) -> list[Sample]:
        chunk = OpenChunk(self.chunk, self.schemas.__getitem__)
        return [chunk.sample(position) for position in range(chunk.count)]


def same(samples: list[Sample]) -> None:
    recorder = Recorder(samples)
    assert recorder.from_tail() == samples
    assert recorder.from_chunk() == samples


def test_a_minute_of_a_node_comes_back() -> None:
    same(list(SyntheticNode().samples(60)))


def test_what_stands_still_is_one_object() -> None:
    samples = list(SyntheticNode().samples(5))
    back = Recorder(samples).from_chunk()
    assert len({id(page) for sample in back for page in sample.metrics.values()}) == 1


def test_parts_come_and_go() -> None:
    full = SyntheticNode(ranks=2).sample()
    bare = Sample(full.at_unix_seconds + 1, full.at_monotonic_seconds + 1, "node-a")
    same([bare, full, bare, replace(full, numa=()), replace(full, metrics={}, gpus=None), full])


def test_a_part_that_is_not_there_when_a_minute_begins() -> None:
    full = SyntheticNode(ranks=1).sample()
    bare = Sample(full.at_unix_seconds + 1, full.at_monotonic_seconds + 1, "node-a")
    encoder, schemas = Encoder(), dict[int, KnownSchema]()
    for minute in ([full, full, bare], [bare, full, full], [full, bare], [bare, bare], [full]):
        for seq, sample in enumerate(minute, start=1):
            _, new = encoder.add(sample, seq)
            schemas |= {schema.id: KnownSchema(schema.data) for schema in new}
        chunk, _ = encoder.take_chunk()
        read = OpenChunk(zlib.compress(msgspec.msgpack.encode(chunk)), schemas.__getitem__)
        assert [read.sample(position) for position in range(read.count)] == minute


def test_a_part_that_was_read_anew_and_did_not_change_is_laid_once() -> None:
    base = SyntheticNode(ranks=2).sample()
    samples = [msgspec.json.decode(msgspec.json.encode(base), type=Sample) for _ in range(10)]
    encoder = Encoder()
    tails = [encoder.add(sample, seq)[0] for seq, sample in enumerate(samples, start=1)]
    chunk, _ = encoder.take_chunk()
    assert [len(segment.starts) for part in chunk.parts for segment in part.segments] == [1] * len(chunk.parts)
    assert max(map(len, tails[1:])) < len(tails[0]) // 10
    same(samples)


def test_a_rank_more_and_a_word_changed() -> None:
    small, large = SyntheticNode(ranks=2).sample(), SyntheticNode(ranks=3).sample()
    renamed = replace(small, sources=tuple(replace(source, detail="it said so") for source in small.sources))
    one = replace(small, sources=(replace(small.sources[0], state="error"), *small.sources[1:]))
    same([small, large, small, renamed, one, small])


def test_lists_that_never_look_alike_need_no_schema_each() -> None:
    base = SyntheticNode(ranks=1).sample()
    samples = [
        replace(
            base,
            requests={"s": tuple(RequestRecord(f"population {second}", float(index)) for index in range(second % 7))},
        )
        for second in range(40)
    ]
    same(samples)
    assert len(Recorder(samples).schemas) < 30


def test_free_json_keeps_true_and_one_apart() -> None:
    base = SyntheticNode(ranks=1).sample()
    infos = [ServerInfo("s", args={"flag": value, "deep": [None, {"x": 1.5}]}) for value in (1, True, 1.0, "1", None)]
    samples = [replace(base, infos={"s": info}) for info in infos]
    back = [sample.infos["s"].args["flag"] for sample in Recorder(samples).from_chunk()]
    assert [repr(value) for value in back] == ["1", "True", "1.0", "'1'", "None"]


@given(
    st.lists(st.lists(NUMBERS, min_size=4, max_size=4), min_size=1, max_size=20),
    st.lists(NUMBERS, min_size=4, max_size=4),
)
@example([[1, 300], [1, 5], [1, 70_000]], [7, 7])
def test_any_numbers_come_back(rows: list[list[object]], base: list[object]) -> None:
    first = msgspec.msgpack.encode(base)
    packed = pack([msgspec.msgpack.encode(row) for row in rows], first)
    read = Rows(packed, first, len(rows))
    assert [repr(row) for row in read.rows()] == [repr(row) for row in rows]
    for numbers in (range(len(rows)), reversed(range(len(rows)))):
        assert all(repr(read.row(number)) == repr(rows[number]) for number in numbers)


def test_an_int_that_outgrows_its_bytes_costs_its_own_column_alone() -> None:
    first = msgspec.msgpack.encode([1 << 40, 120, 0.5])
    packed = pack([msgspec.msgpack.encode([1 << 40, 120 + second, 0.5]) for second in range(60)], first)
    assert list(packed.uneven) == [1]
    assert packed.moved == b""


@st.composite
def some_samples(draw: st.DrawFn) -> Sample:
    """With structs in tuples, dicts and optional fields, several levels deep."""
    return Sample(
        1.0,
        2.0,
        "h",
        tuple(draw(st.lists(st.builds(SourceState), max_size=3))),
        host=draw(st.builds(Host)),
        gpus=draw(st.builds(Gpus)),
        processes=draw(st.none() | st.builds(Processes)),
        numa=tuple(draw(st.lists(st.builds(NumaNode), max_size=3))),
        cgroups=draw(st.dictionaries(st.integers(1, 9), st.builds(Cgroup), max_size=3)),
        placements=draw(st.dictionaries(st.integers(1, 9), st.lists(st.builds(Placement), max_size=2).map(tuple))),
    )


@given(some_samples(), some_samples())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_values_of_the_types_come_back(first: Sample, other: Sample) -> None:
    assume(_fits_64_bits(first) and _fits_64_bits(other))
    recorder = Recorder([first, other, first, first])
    assert recorder.from_chunk() == recorder.from_tail() == [first, other, first, first]


def _fits_64_bits(sample: Sample) -> bool:
    try:
        return bool(msgspec.msgpack.encode(sample))
    except OverflowError:
        return False


class Before(Struct, frozen=True):
    """A part as an older version had it."""

    kept: int
    removed: str = ""
    inner: tuple[SourceState, ...] = ()


class After(Struct, frozen=True):
    """The same part, one field less and two more."""

    kept: int
    inner: tuple[SourceState, ...] = ()
    added: float | None = None
    names: tuple[str, ...] = ("new",)


def test_a_file_opens_when_fields_were_added_and_removed() -> None:
    layout = layout_of(Before)
    numbers, words, shape = flattener(layout)(Before(7, "x", (SourceState("a", "ok"),)))
    (value,) = builder(layout)(Source(numbers, words, shape), 1)
    assert msgspec.convert(value, After) == After(7, (SourceState("a", "ok"),))


def test_events_are_no_part() -> None:
    sample = replace(SyntheticNode(ranks=1).sample(), events=(Event(1.0, "phase", "weights"),))
    assert Recorder([sample]).from_chunk() == [replace(sample, events=())]


@pytest.mark.parametrize("blob", [b"", b"x", zlib.compress(b"\xc0"), zlib.compress(b"\x94\x05\x90\xc4\x00\xc4\x00")])
def test_a_chunk_of_nonsense_is_damaged(blob: bytes) -> None:
    with pytest.raises(Damaged):
        OpenChunk(blob, {}.__getitem__).sample(0)


def test_a_decompression_bomb_is_damaged() -> None:
    with pytest.raises(Damaged, match="larger than"):
        OpenChunk(zlib.compress(bytes(200 << 20)), {}.__getitem__)


def test_a_shape_without_end_is_damaged() -> None:
    layout = {"t": {"s": {"n": [], "w": [], "c": {}}}}
    data = zlib.compress(msgspec.msgpack.encode({"layout": layout, "shape": [1 << 40], "words": [], "base": []}))
    with pytest.raises(Damaged):
        KnownSchema(data).value([], {})
