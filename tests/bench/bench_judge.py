"""Judging: one update at 8, 64 and 1,024 ranks, and ten minutes of samples."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

from ranktop.reconcile import Reconciler, Verdict
from tests.bench.many import RANKS, moved, story
from tests.bench.micro import Case, Work, measured
from tests.bench.rows import Row
from tui.timeline import LiveTimeline

TEN_MINUTES = 600
MOVES = 200
"""More than pyperf runs a case in one process."""


def rows() -> Iterator[Row]:
    """Issue 6: one update under 2 ms, ten minutes under 1.5 s."""
    found = list(measured("judge"))
    yield from found
    eight, more = found[0].value, found[1].value
    yield Row("one update: 64 ranks, times what 8 take", more / eight, "x")


def cases() -> Iterator[Case]:
    for ranks, limit in zip(RANKS, (2.0, None, None), strict=True):
        yield Case(f"one update, {ranks} ranks", _updates(ranks), "ms", limit, times=20 if ranks < 1000 else 3)
    for ranks in RANKS[:2]:
        yield Case(f"one update of another page and other memory of every rank, {ranks} ranks", _moving(ranks), "ms")
    yield Case("ten minutes of samples judged, 8 ranks", _ten_minutes, "s", 1.5, times=1)
    yield Case("keep one verdict for going back", _keeping)


def verdicts(ranks: int) -> Iterator[Verdict]:
    """One verdict a second, without end."""
    reconciler = Reconciler()
    return (reconciler.update(sample) for sample in story(ranks))


def _updates(ranks: int) -> Callable[[], Work]:
    return lambda: functools.partial(next, verdicts(ranks))


def _moving(ranks: int) -> Callable[[], Work]:
    def make() -> Work:
        reconciler, samples = Reconciler(), iter([moved(ranks, second) for second in range(MOVES)])
        return lambda: reconciler.update(next(samples))

    return make


def _ten_minutes() -> Work:
    samples = list(itertools.islice(story(8), TEN_MINUTES))

    def judge() -> None:
        reconciler = Reconciler()
        for sample in samples:
            reconciler.update(sample)

    return judge


def _keeping() -> Work:
    reconciler, timeline = Reconciler(), LiveTimeline()
    verdicts = iter([reconciler.update(moved(8, second)) for second in range(MOVES)])
    return lambda: timeline.push(next(verdicts))
