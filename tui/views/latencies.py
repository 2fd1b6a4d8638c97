"""Quantiles as a small table: a name and p50, p95, p99 in a line."""

from __future__ import annotations

from collections.abc import Mapping

from ranktop.reconcile.verdict import ServiceLatency
from tui.draw import numbers
from tui.draw.spans import Span, TextLine, line, right

_NAME = 14
_VALUE = 9
WIDTH = 1 + _NAME + 3 * _VALUE


def latency_lines(latencies: Mapping[str, ServiceLatency], missing: str, unit_seconds: float = 1.0) -> list[TextLine]:
    """A header, and a line of `WIDTH` cells for each name. `unit_seconds`: what a value of 1 stands for."""
    header = f" {'latency':<{_NAME}}" + "".join(right(name, _VALUE) for name in ("p50", "p95", "p99"))
    return [
        line(Span(header, "muted")),
        *(_line(name, told, missing, unit_seconds) for name, told in latencies.items()),
    ]


def _line(name: str, told: ServiceLatency, missing: str, unit_seconds: float) -> TextLine:
    values = (None if value is None else value * unit_seconds for value in (told.p50, told.p95, told.p99))
    cells = (right(numbers.seconds(value, missing), _VALUE) for value in values)
    return line(" ", Span(f"{name:<{_NAME}}", "muted"), *cells)
