"""Evidence of a finding: numbers and where each came from."""

from __future__ import annotations

from typing import Any

from ranktop.reconcile.ledger import Window


def evidence(source: str, **values: Any) -> dict[str, Any]:
    """`evidence` and `sources` of a finding whose numbers come from one source; what is None is left out."""
    known = {name: round(value, 3) if isinstance(value, float) else value for name, value in values.items()}
    known = {name: value for name, value in known.items() if value is not None}
    return {"evidence": known, "sources": dict.fromkeys(known, source)}


def over_window(window: Window, **values: Any) -> dict[str, Any]:
    """Evidence from the counters of a window, with its length, or that it reaches back to the server's start."""
    seconds = window.seconds
    if seconds is None:
        return evidence("reported", since_start=True, **values)
    return evidence("reported", window_seconds=seconds, **values)


def size(size_bytes: float) -> str:
    """Decimal bytes for a message: `120.00 GB`, `57.6 MB`."""
    return f"{size_bytes / 1e9:.2f} GB" if abs(size_bytes) >= 1e9 else f"{size_bytes / 1e6:.1f} MB"


def span(window: Window) -> str:
    """`in 60 s`, or `since the start`."""
    return "since the start" if window.seconds is None else f"in {window.seconds:.0f} s"
