"""Ranks and their lines from an exporter's series. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ranktop.exporter import metrics
from ranktop.exporter.metrics import SCOPES, UNITS, Scope, Value, line_metric
from ranktop.fleet.source import Row
from ranktop.reconcile.verdict import Line, RankVerdict, Status

Series = Mapping[str, Sequence[tuple[dict[str, str], float]]]
"""Labels and value of every series, by name of the metric."""

_STATUS: dict[float, Status] = {0.0: "ok", 1.0: "over", -1.0: "under"}
_VALUES: tuple[Value, ...] = ("seen", "planned", "difference")
_DIGITS = 9
_PERCENT = ("numa.local", "host.pressure")
"""Lines that are ratios as metrics and percentages everywhere else."""
_LINE_METRICS: dict[Scope, dict[str, tuple[Value, str]]] = {
    scope: {line_metric(scope, value, unit): (value, unit) for value in _VALUES for unit in UNITS} for scope in SCOPES
}


def by_name(rows: Iterable[Row]) -> Series:
    """An answer arranged for the functions here."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for labels, value in rows:
        found.setdefault(labels.get("__name__", ""), []).append((labels, value))
    return found


def ranks_of(series: Series) -> tuple[RankVerdict, ...]:
    """Every rank of the node, in the order of their tags."""
    lines = lines_of(series, "rank")
    known = {
        (labels.get("server", ""), labels.get("rank", "")): labels for labels, _ in series.get(metrics.RANK.name, ())
    }
    return tuple(
        RankVerdict(
            server=server,
            rank=rank,
            pid=_number(known.get((server, rank), {}).get("pid")),
            gpu=_number(known.get((server, rank), {}).get("gpu")),
            cuda_index=None,
            numa=_number(known.get((server, rank), {}).get("numa")),
            state=None,
            lines=lines.get((server, rank), ()),
        )
        for server, rank in sorted({*known, *lines}, key=_place)
    )


def lines_of(series: Series, scope: Scope) -> dict[tuple[str, ...], tuple[Line, ...]]:
    """Lines by what they belong to: (server, rank), or () for the node."""
    owner = SCOPES[scope][:-1]
    found: dict[tuple[str, ...], dict[str, Line]] = {}
    for name, (value, unit) in _LINE_METRICS[scope].items():
        for labels, amount in series.get(name, ()):
            lines = found.setdefault(tuple(labels.get(label, "") for label in owner), {})
            line = labels.get("line", "")
            lines[line] = _with_value(lines.get(line, Line(line, detail="through Prometheus")), value, unit, amount)
    statuses: dict[tuple[str, ...], Status] = {
        (*(labels.get(label, "") for label in owner), labels.get("line", "")): _STATUS.get(code, "unknown")
        for labels, code in series.get(f"{metrics.PREFIX}{scope}_status", ())
    }
    return {
        place: tuple(_with_status(line, statuses.get((*place, line.line))) for line in lines.values())
        for place, lines in found.items()
    }


def _with_value(line: Line, value: Value, unit: str, amount: float) -> Line:
    if unit in ("percent", "ratio"):
        unit, amount = ("percent", round(100 * amount, 9)) if line.line in _PERCENT else ("ratio", amount)
    whole = unit in ("bytes", "tokens") or (unit == "count" and amount.is_integer())
    told = int(amount) if whole else amount
    if value == "seen":
        return replace(line, unit=unit, seen=told, source="reported")
    if value == "planned":
        return replace(line, unit=unit, planned=told)
    return replace(line, unit=unit, difference=told)


def _with_status(line: Line, status: Status | None) -> Line:
    """Only lines with a plan have a status of their own; of the others, being seen is all there is to say."""
    if status is None and line.seen is not None and line.planned is None:
        status = "ok"
    return replace(line, status=status or "unknown")


def _place(rank: tuple[str, ...]) -> tuple[object, ...]:
    """By server, then by the numbers in the tag: TP10 after TP9."""
    server, tag = rank
    words = [(word.rstrip("0123456789"), word) for word in tag.split(" ")]
    return server, [(name, int(word[len(name) :][:_DIGITS] or 0)) for name, word in words]


def _number(text: str | None) -> int | None:
    return int(text[:_DIGITS]) if text and text.isdecimal() else None
