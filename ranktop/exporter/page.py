"""The page that scrapes get: made once a sample at most, whoever asks and however often."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterable
from functools import lru_cache

from ranktop.exporter.families import Point, points
from ranktop.exporter.metrics import METRICS, Metric
from ranktop.reconcile.verdict import Verdict

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Pages:
    """The newest verdict as text. `put` costs nothing; a scrape pays for the text, and only the first one a sample."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._verdict: Verdict | None = None
        self._text: bytes | None = None
        self._compressed: bytes | None = None

    def put(self, verdict: Verdict) -> None:
        """From now on scrapes get this verdict."""
        self._verdict = verdict

    def get(self, compressed: bool = False) -> bytes | None:
        """The page, None before the first verdict. Scrapes at one time wait for one rendering."""
        with self._lock:
            verdict, self._verdict = self._verdict, None
            if verdict is not None:
                self._text, self._compressed = render(points(verdict)), None
            if compressed and self._text is not None and self._compressed is None:
                self._compressed = gzip.compress(self._text, 1)
            return self._compressed if compressed else self._text


def render(values: Iterable[Point]) -> bytes:
    """Exposition format 0.0.4, families in the order of `METRICS`.

    By hand: `generate_latest` of prometheus_client takes four to five times as long on a page of eight ranks
    (`tests/bench/bench_fleet.py`), and a test reads the page back with that library's parser.
    """
    by_name: dict[str, list[str]] = {}
    for metric, labels, value in values:
        by_name.setdefault(metric.name, []).append(f"{_series(metric, labels)} {_number(value)}\n")
    parts: list[str] = []
    for metric in METRICS:
        lines = by_name.get(metric.name)
        if lines:
            parts += (f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} gauge\n", *lines)
    # A name from a process may hold what is no text.
    return "".join(parts).encode(errors="replace")


@lru_cache(maxsize=1 << 14)
def _series(metric: Metric, labels: tuple[str, ...]) -> str:
    if not labels:
        return metric.name
    # An empty label value is the same as no label.
    pairs = zip(metric.labels, labels, strict=True)
    told = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in pairs if value)
    return f"{metric.name}{{{told}}}" if told else metric.name


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
