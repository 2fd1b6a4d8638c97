"""Rows of a damaged file whose checksum does not hold, but would with a flipped bit turned back.

Only for `--salvage`, and only told as repaired: other damage passes for one flipped bit with a probability of the bits
of the row / 2^32, 1 in 50,000 for one of `tail`. What is packed must also hold by its digest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ranktop.recording.decoder import tail_parts
from ranktop.recording.errors import Damaged
from ranktop.recording.flips import mended, mended_by_sums
from ranktop.recording.packed import is_whole
from ranktop.recording.tables import BLOCK, SERIES, TAIL, Table

_MAX_MESSAGE_BYTES = 1 << 18
"""Of a larger row too much else would pass for one flipped bit: more than 1 in 2,000."""

_WITH_SUMS = (SERIES, BLOCK)
"""Their last column but the checksum is a blob with a sum for each of its pieces."""

Row = tuple[Any, ...]


def repaired(table: Table, row: Row) -> Row | None:
    """The row as it was written, checksum last, when one bit of it was flipped; of a blob with sums two of each piece.

    `row`: of the right number of values. None when it cannot be told.
    """
    if not isinstance(row[-1], int) or not _may_fit(table, row):
        return None
    for candidate in _with_blob_mended(table, row):
        for found in (_with_bit_turned(table, candidate), *_that_hold(table, candidate)):
            if found is not None and table.fits(found) and _reads(table, found):
                return found
    return None


def _may_fit(table: Table, row: Row) -> bool:
    """Whether it can be of that table: a text with a flipped bit may be bytes."""
    as_text = (
        "" if isinstance(value, bytes) and column.split()[1] == "TEXT" else value
        for value, column in zip(row, table.columns, strict=False)
    )
    return table.fits(tuple(as_text))


def _with_blob_mended(table: Table, row: Row) -> Iterator[Row]:
    if table in _WITH_SUMS and isinstance(row[-2], bytes):
        for blob in mended_by_sums(row[-2]):
            yield (*row[:-2], blob, row[-1])
    yield row


def _with_bit_turned(table: Table, row: Row) -> Row | None:
    """By the checksum alone. A flipped bit of a value is one of its msgpack, but for what `_that_hold` tries."""
    try:
        message = msgspec.msgpack.encode((table.name, *row[:-1]))
        if len(message) > _MAX_MESSAGE_BYTES:
            return None
        name, *values = msgspec.msgpack.decode(mended(message, row[-1] & 0xFFFF_FFFF) or b"")
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
        return None
    return table.row(*values) if name == table.name and len(values) == len(row) - 1 else None


def _that_hold(table: Table, row: Row) -> Iterator[Row]:
    """With a bit of an int turned, or of a text that is no UTF-8 any more: where another bit makes another msgpack."""
    for place, (value, column) in enumerate(zip(row, table.columns, strict=False)):
        for other in _others(value, column):
            found = (*row[:place], other, *row[place + 1 :])
            if table.holds(found):
                yield found


def _others(value: Any, column: str) -> Iterator[Any]:
    if isinstance(value, int):
        for bit in range(64):
            flipped = value & 0xFFFF_FFFF_FFFF_FFFF ^ 1 << bit
            yield flipped - (flipped >> 63 << 64)
    elif isinstance(value, bytes) and column.split()[1] == "TEXT":
        high = [place for place, byte in enumerate(value) if byte >= 0x80]
        if len(high) == 1:
            yield (value[: high[0]] + bytes([value[high[0]] ^ 0x80]) + value[high[0] + 1 :]).decode()


def _reads(table: Table, row: Row) -> bool:
    if table in _WITH_SUMS:
        return is_whole(row[-2])
    try:
        if table == TAIL:
            tail_parts(row[-2])
    except Damaged:
        return False
    return True
