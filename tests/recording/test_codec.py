"""Samples to rows and back: every field of every type, whatever it holds."""

from __future__ import annotations

import msgspec
import pytest
import zstandard
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ranktop.recording.decoder import OpenChunk, PartValues, read_tail, tail_parts
from ranktop.recording.encoder import MAX_NEW_KEYS, Chunk, ChunkPart, Encoder, Packed
from ranktop.recording.errors import Damaged
from ranktop.recording.flips import with_sums
from ranktop.recording.packed import pack, unpack
from ranktop.recording.parts import encode, instant_of
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
    SeriesKey,
    ServerInfo,
    SourceState,
)
from recording.node import SERVER, SyntheticNode

MOST = 64 << 20


class Recorder:
    """An encoder, what it stores, and what is read of that."""

    def __init__(self) -> None:
        self.encoder = Encoder()
        self.series: dict[int, bytes] = {}
        self.tails: dict[int, bytes] = {}
        self.values = PartValues(self._keys_of)

    def add(self, samples: list[Sample]) -> None:
        for sample in samples:
            seq = len(self.tails) + 1
            self.tails[seq], new = self.encoder.add(sample, seq)
            self._store(new)

    def from_tail(self) -> list[Sample]:
        tails = {seq: tail_parts(tail) for seq, tail in self.tails.items()}
        return [read_tail(seq, tails.__getitem__, self.values) for seq in tails]

    def take_chunk(self) -> list[Sample]:
        packed = self.encoder.take_chunk()
        self._store(packed.new)
        self.chunk = OpenChunk(packed.data, unpack(self.series[packed.uses[0]], MOST), self.values)
        assert set(packed.uses) <= set(self.series)
        return [self.chunk.sample(position) for position in range(self.chunk.count)]

    def _store(self, new: list[Packed]) -> None:
        self.series |= {entry.id: entry.data for entry in new}

    def _keys_of(self, number: int) -> tuple[SeriesKey, ...]:
        return msgspec.msgpack.decode(unpack(self.series[number], MOST), type=tuple[SeriesKey, ...])


def same(samples: list[Sample]) -> Recorder:
    recorder = Recorder()
    recorder.add(samples)
    assert recorder.from_tail() == samples
    assert recorder.take_chunk() == samples
    return recorder


def test_a_minute_of_a_node_comes_back() -> None:
    same(list(SyntheticNode().samples(60)))


def test_what_stands_still_is_one_object() -> None:
    recorder = Recorder()
    recorder.add(list(SyntheticNode().samples(5)))
    assert len({id(page) for sample in recorder.take_chunk() for page in sample.metrics.values()}) == 1


def test_parts_come_and_go() -> None:
    full = SyntheticNode(ranks=2).sample()
    bare = Sample(full.at_unix_seconds + 1, full.at_monotonic_seconds + 1, "node-a")
    same([bare, full, bare, replace(full, numa=()), replace(full, metrics={}, gpus=None), full])


def test_a_part_that_is_not_there_when_a_minute_begins() -> None:
    full = SyntheticNode(ranks=1).sample()
    bare = Sample(full.at_unix_seconds + 1, full.at_monotonic_seconds + 1, "node-a")
    recorder = Recorder()
    for minute in ([full, full, bare], [bare, full, full], [full, bare], [bare, bare], [full]):
        recorder.add(minute)
        assert recorder.take_chunk() == minute


def test_a_part_that_was_read_anew_and_did_not_change_is_laid_once() -> None:
    base = SyntheticNode(ranks=2).sample()
    recorder = same([msgspec.json.decode(msgspec.json.encode(base), type=Sample) for _ in range(10)])
    assert {len(list(recorder.chunk.changes(name))) for name in ("processes", "host", "metrics", "infos")} == {1}
    assert max(map(len, list(recorder.tails.values())[1:])) < len(recorder.tails[1]) // 10


def test_a_rank_more_and_a_word_changed() -> None:
    small, large = SyntheticNode(ranks=2).sample(), SyntheticNode(ranks=3).sample()
    renamed = replace(small, sources=tuple(replace(source, detail="it said so") for source in small.sources))
    one = replace(small, sources=(replace(small.sources[0], state="error"), *small.sources[1:]))
    same([small, large, small, renamed, one, small])


def test_lists_that_never_look_alike() -> None:
    base = SyntheticNode(ranks=1).sample()
    same(
        [
            replace(base, requests={"s": tuple(RequestRecord(f"p {second}", float(at)) for at in range(second % 7))})
            for second in range(40)
        ]
    )


def test_a_page_whose_series_change_all_the_time_stores_no_keys_each_time() -> None:
    base = SyntheticNode(ranks=1).sample()
    page = base.metrics[SERVER]
    pages = [
        replace(page, keys=(*page.keys, SeriesKey("sglang:new", (("user", str(at)),))), values=(*page.values, 1.0))
        for at in range(30)
    ]
    recorder = same([replace(base, metrics={SERVER: page}) for page in pages])
    assert len(recorder.series) == MAX_NEW_KEYS + 1  # and the dictionary
    # They are known again after the minute.
    recorder.add([replace(base, metrics={SERVER: pages[0]})])
    assert recorder.take_chunk()[0].metrics[SERVER] == pages[0]
    assert len(recorder.series) == MAX_NEW_KEYS + 1


def test_a_dictionary_serves_an_hour_and_any_parts_that_it_has() -> None:
    node, recorder = SyntheticNode(ranks=1), Recorder()
    used: list[int] = []
    for minute in range(63):
        sample = node.sample()
        recorder.add([replace(sample, loads={}) if minute % 2 else sample])
        packed = recorder.encoder.take_chunk()
        used.append(packed.uses[0])
        assert len(packed.new) == (len(set(used)) > len(set(used[:-1])))
    assert [used.count(number) for number in dict.fromkeys(used)] == [60, 3]


def test_a_chunk_is_small_beside_its_dictionary() -> None:
    node, recorder = SyntheticNode(ranks=2), Recorder()
    sizes: list[int] = []
    for _ in range(2):
        recorder.add(list(node.samples(2)))
        sizes.append(len(recorder.encoder.take_chunk().data))
    alone = Encoder()
    alone.add(recorder.from_tail()[-1], 1)
    assert max(sizes) < len(pack(alone.add(node.sample(), 2)[0]))


def test_free_json_keeps_true_and_one_apart() -> None:
    base = SyntheticNode(ranks=1).sample()
    infos = [ServerInfo("s", args={"flag": value, "deep": [None, {"x": 1.5}]}) for value in (1, True, 1.0, "1", None)]
    recorder = Recorder()
    recorder.add([replace(base, infos={"s": info}) for info in infos])
    back = [sample.infos["s"].args["flag"] for sample in recorder.take_chunk()]
    assert [repr(value) for value in back] == ["1", "True", "1.0", "'1'", "None"]


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
    same([first, other, first, first])


def _fits_64_bits(sample: Sample) -> bool:
    try:
        return bool(msgspec.msgpack.encode(sample))
    except OverflowError:
        return False


def test_events_are_no_part() -> None:
    sample = replace(SyntheticNode(ranks=1).sample(), events=(Event(1.0, "phase", "weights"),))
    recorder = Recorder()
    recorder.add([sample])
    assert recorder.take_chunk() == [replace(sample, events=())]


def chunk_of(*parts: ChunkPart, count: int = 2) -> OpenChunk:
    return OpenChunk(pack(encode(Chunk(count, list(parts)))), b"", PartValues({}.__getitem__))


INSTANT = encode(instant_of(Sample(1.0, 2.0)))


@pytest.mark.parametrize(
    "blob",
    [b"", b"x", pack(b"\xc0"), pack(b"\x92\x02\x90"), with_sums(b"x" * 100), pack(b"x")[:-1]],
)
def test_a_chunk_of_nonsense_is_damaged(blob: bytes) -> None:
    with pytest.raises(Damaged):
        OpenChunk(blob, b"", PartValues({}.__getitem__)).sample(0)


@pytest.mark.parametrize(
    "part",
    [
        ChunkPart("", None, [0, 0], [b"x", b"x"]),
        ChunkPart("", None, [1, 0], [b"x", b"x"]),
        ChunkPart("", None, [-1], [b"x"]),
        ChunkPart("", None, [0], [b"x", b"x"]),
        ChunkPart("", None, [0], []),
        ChunkPart("", None, [], []),
        ChunkPart("", None, list(range(601)), [b""] * 601),
    ],
)
def test_rows_that_are_not_what_they_say_are_damaged(part: ChunkPart) -> None:
    with pytest.raises(Damaged):
        chunk_of(part)


def test_a_row_of_another_type_and_a_part_nobody_knows() -> None:
    instants = ChunkPart("", None, [0, 1], [INSTANT] * 2)
    chunk = chunk_of(instants, ChunkPart("host", None, [1], [b"\x07"]), ChunkPart("later", None, [0], [b"\x07"]))
    assert chunk.sample(0) == Sample(1.0, 2.0)
    with pytest.raises(Damaged, match="host"):
        chunk.sample(1)
    with pytest.raises(Damaged, match="time"):
        chunk_of(instants, count=3).times()


@pytest.mark.parametrize("says_its_size", [True, False])
def test_a_decompression_bomb_is_damaged(monkeypatch: pytest.MonkeyPatch, says_its_size: bool) -> None:
    compressor = zstandard.ZstdCompressor

    def without_size(**options: object) -> zstandard.ZstdCompressor:
        return compressor(**options, write_content_size=says_its_size)  # type: ignore[arg-type]

    monkeypatch.setattr(zstandard, "ZstdCompressor", without_size)
    blob = pack(bytes(200 << 20))
    with pytest.raises(Damaged, match="larger than"):
        OpenChunk(blob, b"", PartValues({}.__getitem__))


def test_a_row_larger_than_any_is_not_read() -> None:
    row = b"\xdd" + (3 << 20).to_bytes(4, "big") + b"\x90" * (3 << 20)
    instants = ChunkPart("", None, [0], [INSTANT])
    with pytest.raises(Damaged, match="bytes, of at most"):
        chunk_of(instants, ChunkPart("sources", None, [0], [row]), count=1).sample(0)
