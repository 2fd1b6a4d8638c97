"""One line of a verdict as text: value with its unit, role, source."""

from __future__ import annotations

from ranktop.reconcile.verdict import Line
from tui.draw import numbers
from tui.draw.spans import Span

GIB_LINES = ("hbm.",)
TOLD = ("reported", "logged")
"""Sources that go on saying what they said of a process that is gone."""


def value(shown: Line, amount: float | None, missing: str) -> str:
    """An amount in the line's unit. HBM and the reserve read in GiB, host pools in decimal GB, always written."""
    if amount is None:
        return missing
    if shown.unit == "bytes":
        if shown.line.startswith(GIB_LINES) or shown.line == "host.reserve":
            return f"{amount / numbers.GIB:.2f} GiB" if abs(amount) >= 1e8 else numbers.size(amount, missing)
        return f"{amount / 1e9:.2f} GB" if abs(amount) >= 1e9 else numbers.size(amount, missing)
    if shown.unit == "bytes_per_second":
        return numbers.rate(amount, missing)
    if shown.unit == "percent":
        return f"{amount:.1f} %"
    if shown.unit == "ratio":
        return f"{100 * amount:.1f} %"
    if shown.unit == "seconds":
        return numbers.seconds(amount, missing)
    if shown.unit == "tokens":
        return f"{amount:,.0f} tok"
    return f"{amount:,.0f}" if float(amount).is_integer() else f"{amount:,.2f}"


def status_role(shown: Line) -> str:
    """The colour of a status."""
    if shown.status in ("over", "under"):
        return "breach"
    return "muted" if shown.status == "unknown" or shown.stale else "text"


def seen_cell(shown: Line, missing: str, is_gone: bool = False) -> Span:
    """The seen value, marked when it is the group's or has aged, as all that was told of a rank that is gone."""
    text = value(shown, shown.seen, missing)
    mark = "'" if shown.group and shown.seen is not None else ""
    is_old = shown.stale or (is_gone and shown.source in TOLD)
    aged = "~" if is_old and shown.seen is not None else ""
    return Span(f"{aged}{text}{mark}", "muted" if is_old else status_role(shown), shown.status in ("over", "under"))


def difference_cell(shown: Line, missing: str) -> Span:
    """The difference with its sign; nothing where there is nothing to compare."""
    if shown.difference is None:
        return Span("", "muted")
    if shown.difference == 0:
        return Span("0", "muted")
    sign = "+" if shown.difference > 0 else "-"
    return Span(sign + value(shown, abs(shown.difference), missing), status_role(shown))
