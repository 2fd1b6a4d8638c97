"""Pressure stall information of the host or of a cgroup (Documentation/accounting/psi.rst of Linux)."""

from __future__ import annotations

from ranktop.sample import Pressure


def parse_pressure(raw: bytes) -> Pressure | None:
    """`some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and the same with `full`. None where there is neither."""
    lines: dict[bytes, dict[bytes, bytes]] = {}
    for line in raw.splitlines():
        kind, _, rest = line.partition(b" ")
        if kind in (b"some", b"full"):
            lines[kind] = dict(item.split(b"=", 1) for item in rest.split() if b"=" in item)
    if not lines:
        return None
    some, full = lines.get(b"some", {}), lines.get(b"full", {})
    return Pressure(
        some_avg10_percent=_percent(some, b"avg10"),
        some_avg60_percent=_percent(some, b"avg60"),
        full_avg10_percent=_percent(full, b"avg10"),
        full_avg60_percent=_percent(full, b"avg60"),
        some_total_microseconds=_total(some),
        full_total_microseconds=_total(full),
    )


def _percent(line: dict[bytes, bytes], key: bytes) -> float | None:
    value = line.get(key, b"")
    return float(value) if value.replace(b".", b"", 1).isdigit() else None


def _total(line: dict[bytes, bytes]) -> int | None:
    value = line.get(b"total", b"")
    return int(value) if value.isdigit() else None
