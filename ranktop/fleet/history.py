"""The night when nobody was recording: SGLang's own series out of Prometheus, as samples.

Only what SGLang exports was kept there: tiers, service, token pools by rank. Processes, host memory, NUMA and GPUs are
not seen, and their lines stay `unknown`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ranktop.fleet.queries import quoted
from ranktop.fleet.source import QuerySource, Track
from ranktop.reconcile.families import SERIES_NAMES
from ranktop.sample import MetricsPage, Processes, Sample, SeriesKey, SourceState

CHUNK_SECONDS = 300.0
"""Asked at a time: a page of 8 ranks has up to 6,500 series, and the answer has them a point a step."""
_TARGET_LABELS = ("__name__", "instance", "job")


def history(source: QuerySource, instance: str, start: float, end: float, step_seconds: float) -> Iterator[Sample]:
    """A sample a step in which the target was scraped, oldest first. Raises SourceError.

    `instance` is the target's label. Of a server that was not scraped for a while there is no sample.
    """
    query = f'{{__name__=~"sglang[:_].+", instance={quoted(instance)}}}'
    steps = max(1, int(CHUNK_SECONDS / step_seconds))
    at = float(int(start))
    while at <= end:
        last = min(end, at + (steps - 1) * step_seconds)
        for page in pages(source.over(query, at, last, step_seconds), instance):
            yield _sample(page, step_seconds)
        at += steps * step_seconds


def pages(tracks: Sequence[Track], instance: str) -> tuple[MetricsPage, ...]:
    """The tracks of one server turned into a page a moment, in the order of time. Only families that ranktop reads."""
    by_time: dict[float, dict[SeriesKey, float]] = {}
    for track in tracks:
        # Stored names have an underscore where Prometheus asked for OpenMetrics.
        name = track.labels.get("__name__", "").replace("sglang_", "sglang:", 1)
        if name not in SERIES_NAMES:
            continue
        labels = sorted((key, value) for key, value in track.labels.items() if key not in _TARGET_LABELS)
        key = SeriesKey(name, tuple(labels))
        for at, value in track.points:
            by_time.setdefault(at, {})[key] = value
    return tuple(
        MetricsPage(instance, at, 0.0, 0, tuple(values), tuple(values.values()))
        for at, values in sorted(by_time.items())
    )


def _sample(page: MetricsPage, step_seconds: float) -> Sample:
    at = page.at_unix_seconds
    state = SourceState(
        "metrics",
        "ok",
        part="metrics",
        server=page.server,
        detail="through Prometheus",
        at_unix_seconds=at,
        period_seconds=step_seconds,
    )
    return Sample(at, at, page.server, sources=(state,), processes=Processes(), metrics={page.server: page})
