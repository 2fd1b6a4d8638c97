"""Numbers as a person reads them, in fixed widths. GB is 1e9, GiB is 2^30; the unit stands in a header or beside."""

from __future__ import annotations

from typing import NamedTuple

GIB = 1 << 30


class Scale(NamedTuple):
    """The unit of a whole column, chosen by its largest value, so that numbers below each other compare."""

    divisor: float
    unit: str


def byte_scale(values: list[float]) -> Scale:
    """Decimal units, as SGLang sizes and logs host pools."""
    largest = max(values, default=1e9)
    if largest >= 1e9:
        return Scale(1e9, "GB")
    return Scale(1e6, "MB") if largest >= 1e6 else Scale(1e3, "kB")


def scaled(value: float | None, scale: Scale, missing: str) -> str:
    """A value in the unit of its column with as many decimals as its size leaves room for."""
    if value is None:
        return missing
    number = value / scale.divisor
    return f"{number:.2f}" if abs(number) < 1000 else f"{number:.0f}"


def gib(value: float | None, missing: str) -> str:
    """HBM in GiB, one decimal."""
    return missing if value is None else f"{value / GIB:.1f}"


def percent(share: float | None, missing: str, decimals: int = 0) -> str:
    """A ratio 0..1 as a percentage without its sign; all of it without decimals, as wide as the rest."""
    if share is None:
        return missing
    text = f"{100 * share:.{decimals}f}"
    return "100" if text.startswith("100.") else text


def size(value: float | None, missing: str) -> str:
    """Decimal bytes with their own unit: `1153 GB`, `62.2 MB`. No TB: a node's budgets are counted in GB."""
    if value is None:
        return missing
    for divisor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(value) >= divisor:
            number = value / divisor
            return f"{number:.0f} {unit}" if abs(number) >= 100 else f"{number:.1f} {unit}"
    return f"{value:.0f} B"


def rate(value: float | None, missing: str) -> str:
    """Decimal bytes a second."""
    return missing if value is None else f"{size(value, missing)}/s"


def seconds(value: float | None, missing: str) -> str:
    """A latency: `840 ms`, `3.1 s`."""
    if value is None:
        return missing
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"
