"""Values of decoded JSON that strangers wrote: numbers that Python has and nobody else can add, keep or record."""

from __future__ import annotations

import math
from typing import Any

LARGEST = (1 << 63) - 1
"""Of a signed 64-bit integer, what SGLang's own counters and every recording hold."""


def whole(value: Any) -> int | None:
    """An integer of 64 bits; None for any other value, and for a truth value."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and -LARGEST <= value <= LARGEST else None


def number(value: Any) -> float | None:
    """A finite number; None for any other value, and for a truth value."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    found = whole(value)
    return None if found is None else float(found)


def within_64_bits(value: Any) -> Any:
    """The same JSON value with None for every integer beyond 64 bits."""
    if isinstance(value, dict):
        return {name: within_64_bits(field) for name, field in value.items()}
    if isinstance(value, list | tuple):
        return [within_64_bits(item) for item in value]
    return whole(value) if isinstance(value, int) and not isinstance(value, bool) else value
