"""The healthy node of the tests with any number of ranks, and its story second by second."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from msgspec.structs import replace

from ranktop.sample import Gpu, GpuProcess, Gpus, Placement, RankProcess, RankTag, Sample
from support import samples

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
    """The node after so many seconds in which every rank's memory and traffic moved a little."""
    sample = many(ranks)
    assert sample.processes is not None
    assert sample.gpus is not None
    more = second * 700_000_000
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
        metrics={samples.SERVER: samples.page(at, used=300_000 + 10_000 * second)},
    )


def many(ranks: int) -> Sample:
    """The healthy node with more ranks; those past eight have no pools."""
    sample = samples.healthy()
    if ranks == 8:
        return sample
    assert sample.processes is not None
    assert sample.gpus is not None
    extra = [_rank(sample, number) for number in range(8, ranks)]
    gpus = [
        Gpu(index, total_bytes=150 * 10**9, numa_node=0, processes=(GpuProcess(pid, 10**11),))
        for index, pid in _pids(ranks)
    ]
    return replace(
        sample,
        processes=replace(sample.processes, ranks=(*sample.processes.ranks, *extra)),
        gpus=Gpus(gpus=(*sample.gpus.gpus, *gpus)),
        placements=sample.placements | {pid: (Placement(pid, 0, 256, ((0, 256),)),) for _, pid in _pids(ranks)},
    )


def _pids(ranks: int) -> list[tuple[int, int]]:
    return [(number, 100_000 + number) for number in range(8, ranks)]


def _rank(sample: Sample, number: int) -> RankProcess:
    assert sample.processes is not None
    first = sample.processes.ranks[0]
    return replace(first, tag=RankTag(tp=number), pid=100_000 + number, start_ticks=number)
