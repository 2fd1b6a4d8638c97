"""Flipped bits are found by their checksums, in every place of every kind of row; other damage is not."""

from __future__ import annotations

import random
import zlib

import pytest

from ranktop.recording.flips import PIECE_BYTES, flipped_bit, mended, mended_by_sums, with_sums, without_sums
from ranktop.recording.packed import pack
from ranktop.recording.parts import encode
from ranktop.recording.repair import Row, repaired
from ranktop.recording.tables import BLOCK, CHUNK, EVENT, META, ROLLUP, SERIES, TAIL, Table

RNG = random.Random(3)
PACKED = pack(RNG.randbytes(3000))
KINDS = [column.split()[1] for column in ROLLUP.columns[5:-1]]
ROWS = [
    (META, META.row("host", "node-a")),
    (CHUNK, CHUNK.row(61, 60, 1.79e9, 1.79e9 + 59.5, "[1,2,3]", 40_000)),
    (SERIES, SERIES.row(7, 1, PACKED)),
    (BLOCK, BLOCK.row(61, PACKED)),
    (TAIL, TAIL.row(300, 1.79e9 + 0.25, encode([("", None, 291, None), ("x", None, 300, [3, 1])]))),
    (TAIL, TAIL.row(301, 1.79e9 + 1.25, encode([("host", None, 301, [0.5] * 700)]))),
    (EVENT, EVENT.row(3, 5, 1.5, "sample", "mark", None, "s", None, None, "owner rank stopped", "{}")),
    (ROLLUP, ROLLUP.row(1, 10, 1.5, "s", "TP0", *[{"INTEGER": 1 << 36, "REAL": 0.5}[kind] for kind in KINDS], "warn")),
]


def flips_of(row: Row, place: int) -> list[Row]:
    """The row with each bit of one value flipped, as the file would give it."""
    value, found = row[place], []
    if isinstance(value, int):
        wide = value & 0xFFFF_FFFF_FFFF_FFFF
        found = [(wide ^ 1 << bit) - (wide >> 63 << 64) if bit < 63 else wide - (1 << 63) for bit in range(64)]
    elif isinstance(value, str | bytes):
        raw = value.encode() if isinstance(value, str) else value
        bits = range(8 * len(raw)) if len(raw) < 200 else RNG.sample(range(8 * len(raw)), 200)
        for bit in bits:
            data = bytearray(raw)
            data[bit // 8] ^= 1 << bit % 8
            try:
                found.append(data.decode() if isinstance(value, str) else bytes(data))
            except UnicodeDecodeError:
                found.append(bytes(data))
    return [(*row[:place], other, *row[place + 1 :]) for other in found]


@pytest.mark.parametrize(("table", "row"), ROWS, ids=[table.name for table, _ in ROWS])
def test_any_flipped_bit_of_a_row_is_turned_back(table: Table, row: Row) -> None:
    for place in range(len(row)):
        for flipped in flips_of(row, place):
            assert not table.holds(flipped)
            assert repaired(table, flipped) == row


@pytest.mark.parametrize(("table", "row"), ROWS, ids=[table.name for table, _ in ROWS])
def test_several_flipped_bits_of_a_value_are_not_guessed(table: Table, row: Row) -> None:
    """Two in a blob with sums are found by these, three are not; in any other value two are not."""
    for place, value in enumerate(row[:-1]):
        if isinstance(value, str | bytes) and len(value) > 2:
            raw = bytearray(value.encode() if isinstance(value, str) else value)
            raw[0] ^= 1
            raw[1] ^= 2
            if isinstance(value, bytes) and without_sums(value) is not None:
                assert repaired(table, (*row[:place], bytes(raw), *row[place + 1 :])) == row
                raw[2] ^= 2
            other = raw.decode() if isinstance(value, str) else bytes(raw)
            assert repaired(table, (*row[:place], other, *row[place + 1 :])) is None


def test_every_bit_has_a_difference_of_its_own() -> None:
    data = RNG.randbytes(300)
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        assert flipped_bit(zlib.crc32(damaged) ^ zlib.crc32(data), len(data)) == (bit // 8, bit % 8)
        assert mended(bytes(damaged), zlib.crc32(data)) == data


@pytest.mark.parametrize("size", [1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 40_000])
def test_a_bit_in_every_piece_and_in_every_sum(size: int) -> None:
    data = RNG.randbytes(size)
    whole = with_sums(data)
    damaged = bytearray(whole)
    for begin in (*range(0, size, PIECE_BYTES), *range(size, len(whole), 4)):
        damaged[begin] ^= 1 << RNG.randrange(8)
    assert list(mended_by_sums(bytes(damaged))) == [whole]
    assert without_sums(whole) == data
    assert without_sums(bytes(damaged)) is None


def test_any_two_bits_of_a_piece() -> None:
    for size in (2, 100, PIECE_BYTES, PIECE_BYTES + 300):
        whole = with_sums(RNG.randbytes(size))
        for _ in range(20):
            damaged = bytearray(whole)
            for bit in RNG.sample(range(8 * min(size, PIECE_BYTES)), 2):
                damaged[bit // 8] ^= 1 << bit % 8
            assert whole in mended_by_sums(bytes(damaged))


def test_a_block_with_two_bits_of_a_piece_and_one_of_every_other_is_turned_back() -> None:
    row = next(row for table, row in ROWS if table == BLOCK)
    damaged = bytearray(row[1])
    for begin in range(0, len(damaged), PIECE_BYTES):
        damaged[begin + 7] ^= 16
    assert repaired(BLOCK, (row[0], bytes(damaged), row[2])) == row
    damaged[9] ^= 1
    assert repaired(BLOCK, (row[0], bytes(damaged), row[2])) == row
    damaged[10] ^= 1
    assert repaired(BLOCK, (row[0], bytes(damaged), row[2])) is None


def test_what_has_another_digest_is_no_repair() -> None:
    other = with_sums(RNG.randbytes(500))
    row = BLOCK.row(61, other)
    assert repaired(BLOCK, (row[0], row[1], row[2] ^ 8)) is None
