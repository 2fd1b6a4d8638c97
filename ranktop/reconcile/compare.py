"""Planned against seen, for one quantity."""

from __future__ import annotations

from ranktop.reconcile.verdict import Line, Source, Status


def compare(
    line: str,
    planned: float | int | None,
    seen: float | int | None,
    *,
    unit: str = "bytes",
    tolerance: float = 0.0,
    source: Source | None,
    detail: str = "",
    mapped_bytes: int | None = None,
    group: bool = False,
    stale: bool = False,
) -> Line:
    """A line with its difference and status. Missing stays missing: no reading is `unknown`, never 0 and never `ok`."""
    difference = seen - planned if seen is not None and planned is not None else None
    return Line(
        line=line,
        planned=planned,
        seen=seen,
        unit=unit,
        difference=difference,
        status=_status(seen, difference, tolerance),
        source=source if seen is not None or planned is not None else None,
        detail=detail,
        mapped_bytes=mapped_bytes,
        group=group,
        stale=stale,
    )


def reading(
    line: str,
    seen: float | int | None,
    *,
    unit: str = "bytes",
    source: Source | None,
    missing: str = "",
    group: bool = False,
    stale: bool = False,
) -> Line:
    """A line without a plan. `missing` says why there is no value."""
    if seen is None:
        return Line(line, unit=unit, detail=missing, group=group, stale=stale)
    return Line(line, seen=seen, unit=unit, status="ok", source=source, group=group, stale=stale)


def _status(seen: float | int | None, difference: float | int | None, tolerance: float) -> Status:
    if seen is None:
        return "unknown"
    if difference is None or abs(difference) <= tolerance:
        return "ok"
    return "over" if difference > 0 else "under"
