"""Changes to the healthy node of `samples`, for tests of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from ranktop.finding import Finding
from ranktop.reconcile import Reconciler, Verdict
from ranktop.sample import Cgroup, Event, Gpu, GpuProcess, RankProcess, Sample, SeriesKey
from support import samples

Change = Callable[[Sample], Sample]
LIMIT = 1300 * 10**9
POD = "/kubepods.slice/pod7"


def judge(story: Iterable[Sample]) -> Verdict:
    """The last verdict of a story."""
    reconciler = Reconciler()
    return [reconciler.update(sample) for sample in story][-1]


def story(seconds: int, change: Change = lambda sample: sample, step: int = 1) -> list[Sample]:
    """The healthy node under one change, a sample every `step` seconds up to and with the last second."""
    return [change(samples.healthy(at)) for at in range(0, seconds + 1, step)]


def moving(seconds: int, change: Callable[[Sample, int], Sample], step: int = 1) -> list[Sample]:
    """The same with a change that depends on the second."""
    return [change(samples.healthy(at), at) for at in range(0, seconds + 1, step)]


def found(verdict: Verdict, code: str) -> list[tuple[str, tuple[str, ...]]]:
    """(severity, ranks) of every finding of that code."""
    return [(finding.severity, finding.ranks) for finding in verdict.findings if finding.code == code]


def only(verdict: Verdict, code: str) -> Finding:
    """The one finding of that code."""
    (finding,) = [finding for finding in verdict.findings if finding.code == code]
    return finding


def host(sample: Sample, **fields: Any) -> Sample:
    assert sample.host is not None
    return replace(sample, host=replace(sample.host, **fields))


def ranks(sample: Sample, change: Callable[[RankProcess], RankProcess], *tps: int) -> Sample:
    """Change the processes of these ranks, of all when none is named."""
    assert sample.processes is not None
    changed = tuple(change(rank) if not tps or rank.tag.tp in tps else rank for rank in sample.processes.ranks)
    return replace(sample, processes=replace(sample.processes, ranks=changed))


def gpu(sample: Sample, index: int, **fields: Any) -> Sample:
    assert sample.gpus is not None

    def changed(known: Gpu) -> Gpu:
        return replace(known, **fields) if known.index == index else known

    return replace(sample, gpus=replace(sample.gpus, gpus=tuple(changed(known) for known in sample.gpus.gpus)))


def used(sample: Sample, tp: int, extra_bytes: int) -> Sample:
    """The rank's process holds that much more than 137 GB."""
    process = GpuProcess(samples.pid_of(tp), 137 * 10**9 + extra_bytes)
    return gpu(sample, tp, processes=(process,), free_bytes=12 * 10**9 - extra_bytes)


def with_graphs(sample: Sample) -> Sample:
    """SGLang reports all three parts, so that the rest can be told."""
    known = sample.metrics[samples.SERVER]
    graphs = tuple(
        SeriesKey("sglang:graph_memory_usage_gb", (("tp_rank", str(tp)), ("phase", "decode"))) for tp in range(8)
    )
    more = replace(known, keys=(*known.keys, *graphs), values=(*known.values, *(1.9 for _ in graphs)))
    return replace(sample, metrics={samples.SERVER: more})


def loading(sample: Sample) -> Sample:
    """Not ready: no page yet, and `/server_info` says so."""
    info = replace(sample.infos[samples.SERVER], is_ready=False)
    return replace(sample, infos={samples.SERVER: info}, metrics={})


def without_server(sample: Sample) -> Sample:
    """Main process, ranks and what they answered are gone; the GPUs are empty."""
    assert sample.processes is not None
    assert sample.gpus is not None
    gpus = tuple(replace(known, processes=()) for known in sample.gpus.gpus)
    return replace(
        sample,
        processes=replace(sample.processes, servers=(), ranks=()),
        mappings={},
        placements={},
        metrics={},
        infos={},
        gpus=replace(sample.gpus, gpus=gpus),
    )


def events(sample: Sample, *new: Event) -> Sample:
    return replace(sample, events=(*sample.events, *new))


def event(
    kind: str, at: float, *, rank: str | None = None, text: str = "", source: str = "logged", **fields: Any
) -> Event:
    """An event of the one server, `at` seconds into the story."""
    return Event(samples.START + at, kind, text or kind, samples.SERVER if rank else None, rank, fields, source)


def cgroup(sample: Sample, **fields: Any) -> Sample:
    """All ranks in one pod of 1300 GB, 1200 GB charged, 40 GB of it page cache."""
    known: dict[str, Any] = {
        "current_bytes": 1200 * 10**9,
        "limit_bytes": LIMIT,
        "limit_path": POD,
        "active_file_bytes": 10 * 10**9,
        "inactive_file_bytes": 30 * 10**9,
        "slab_reclaimable_bytes": 0,
        "oom_count": 0,
        "oom_kill_count": 0,
        "max_count": 0,
    } | fields
    pod = Cgroup(f"{POD}/container", 2, **known)
    return replace(sample, cgroups=dict.fromkeys(sample.mappings, pod))
