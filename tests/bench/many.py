"""The healthy node of the tests with any number of ranks, and its story second by second."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from msgspec.structs import replace

from ranktop.sample import Sample
from support import samples
from support.many import many

RANKS = (8, 64, 1024)
PAGE_EVERY_SECONDS = 5


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


def moved(ranks: int, second: int) -> Sample:
    """The node after so many seconds in which every rank's memory and traffic moved to and fro a little."""
    sample = many(ranks)
    assert sample.processes is not None
    assert sample.gpus is not None
    step = second % PAGE_EVERY_SECONDS
    more = step * 700_000_000
    processes = tuple(
        replace(rank, rss_anon_bytes=(rank.rss_anon_bytes or 0) + more) for rank in sample.processes.ranks
    )
    gpus = tuple(replace(gpu, used_bytes=(gpu.used_bytes or 10**11) + more) for gpu in sample.gpus.gpus)
    at = samples.START + second
    return replace(
        sample,
        at_unix_seconds=at,
        at_monotonic_seconds=1000.0 + second,
        processes=replace(sample.processes, ranks=processes),
        gpus=replace(sample.gpus, gpus=gpus),
        metrics={samples.SERVER: samples.page(at, used=300_000 + 10_000 * step)},
    )
