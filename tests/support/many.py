"""The healthy node with more ranks than its plan has."""

from __future__ import annotations

from msgspec.structs import replace

from ranktop.sample import Gpu, GpuProcess, Gpus, Placement, RankProcess, RankTag, Sample
from support import samples


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
