"""Judging and drawing: one update, ten minutes of samples, every view; at 8, 64 and 1,024 ranks."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Iterator

from msgspec.structs import replace

from ranktop.reconcile import Reconciler, Verdict
from ranktop.sample import Sample
from support import samples
from support.many import many
from tests.bench.rows import Row, cpu_milliseconds, of_runs
from tui.actions import VIEWS
from tui.draw.glyphs import UNICODE
from tui.timeline import LiveTimeline
from tui.trails import Trails
from tui.views.view import Frame

PAGE_EVERY_SECONDS = 5


def rows() -> Iterator[Row]:
    """Issue 6: one update under 2 ms, ten minutes under 1.5 s. Design section 8: 64 ranks at most twice 8."""
    for ranks, limit in ((8, 2.0), (64, None), (1024, None)):
        update = functools.partial(next, _verdicts(ranks))
        yield of_runs(
            f"one update, {ranks} ranks", cpu_milliseconds(update, times=20 if ranks < 1000 else 3), "ms", limit
        )
        yield from _views(update(), ranks)
    yield _ten_minutes()


def _verdicts(ranks: int) -> Iterator[Verdict]:
    reconciler = Reconciler()
    return (reconciler.update(sample) for sample in story(ranks))


def story(ranks: int) -> Iterator[Sample]:
    """Samples without end: one a second, with another page every five seconds."""
    base, page = many(ranks), samples.page(samples.START)
    for second in itertools.count():
        if second % PAGE_EVERY_SECONDS == 0:
            page = samples.page(samples.START + second)
        yield replace(
            base,
            at_unix_seconds=samples.START + second,
            at_monotonic_seconds=1000.0 + second,
            metrics={samples.SERVER: page},
        )


def _ten_minutes() -> Row:
    taken: list[float] = []
    for _ in range(3):
        samples_of_ten_minutes = list(itertools.islice(story(8), 600))
        reconciler = Reconciler()
        started = time.process_time()
        for sample in samples_of_ten_minutes:
            reconciler.update(sample)
        taken.append(time.process_time() - started)
    return of_runs("ten minutes of samples judged, 8 ranks", taken, "s", 1.5)


def _views(verdict: Verdict, ranks: int) -> Iterator[Row]:
    trails = Trails()
    trails.push(verdict)
    frame = Frame(verdict, 120, UNICODE, trails)
    for view in VIEWS:
        taken = cpu_milliseconds(lambda view=view: view.draw(frame), times=10 if ranks < 1000 else 2)
        yield of_runs(f"draw {view.name}, {ranks} ranks", taken, "ms")
    if ranks == 8:
        timeline = LiveTimeline()
        yield of_runs("keep one verdict for going back", cpu_milliseconds(lambda: timeline.push(verdict)), "ms")
