"""Metrics pages for tests: from text, or from a genuine sample."""

from __future__ import annotations

from pathlib import Path

from collectors.exposition import ExpositionParser
from ranktop.reconcile.families import SERIES_NAMES
from ranktop.reconcile.series import Series, seconds_between, window
from ranktop.sample import MetricsPage


def page(text: str, at: float = 0.0) -> MetricsPage:
    """A page from exposition lines. `*` stands for the `sglang:` of every name."""
    lines = "".join(line.strip().replace("*", "sglang:", 1) + "\n" for line in text.splitlines())
    page = ExpositionParser(SERIES_NAMES).parse(lines)
    return MetricsPage("a:1", at, 0.01, len(lines), page.keys, page.values)


def sample_page(shared: Path, name: str, at: float = 0.0) -> MetricsPage:
    """A genuine page of `shared/samples`."""
    return page((shared / "samples" / f"{name}.prom").read_text(), at)


def between(before: MetricsPage | None, after: MetricsPage) -> tuple[Series, float | None]:
    """What two pages gained, and in how many seconds."""
    return window(before, after), seconds_between(before, after)
