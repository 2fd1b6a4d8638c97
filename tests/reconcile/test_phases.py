"""Phases of a start from log and readiness; peaks and baselines of HBM by phase."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ranktop.plan.plan import GIB
from ranktop.reconcile import Reconciler, Verdict
from ranktop.sample import Event, GpuProcess, Sample
from support import changes, samples
from support.changes import event, events, story, used, with_graphs

GB = 10**9


def phases(verdict: Verdict) -> list[tuple[str, str | None]]:
    return [(phase.phase, phase.rank) for phase in verdict.phases]


def of_server(kind: str, at: float, **fields: Any) -> Event:
    return replace(event(kind, at, **fields), server=samples.SERVER)


def starting(seconds: int, *new: Event, gib: float) -> Sample:
    """Not ready, TP0's process at so many GiB."""
    sample = changes.loading(samples.healthy(seconds))
    sample = changes.gpu(sample, 0, processes=(GpuProcess(samples.pid_of(0), int(gib * GIB)),))
    return events(sample, *new)


def a_start() -> list[Sample]:
    story = [
        starting(0, of_server("server_args", 0.0, args={}), gib=0.5),
        starting(10, gib=95),
        starting(20, event("weights_end", 20, rank="TP0"), gib=91.9),
        starting(30, event("l1_pool", 30, rank="TP0", tokens=432_000), gib=116.6),
        starting(40, event("graph_end", 40, rank="TP0"), gib=118.6),
        starting(50, event("host_pool", 50, rank="TP0", size_gb=120.0), gib=118.6),
    ]
    ready = events(samples.healthy(60), of_server("ready", 59.5))
    idle = replace(ready, metrics={samples.SERVER: samples.with_points(samples.page(samples.START + 60), ())})
    first = events(samples.healthy(70), event("prefill_batch", 69, rank="TP0", new_tokens=8192))
    return [*story, idle, first, samples.healthy(200), samples.healthy(380)]


def test_the_phases_of_a_start() -> None:
    reconciler = Reconciler()
    verdict = [reconciler.update(sample) for sample in a_start()][-1]
    assert phases(verdict) == [
        ("start", None),
        ("weights", "TP0"),
        ("pool", "TP0"),
        ("graphs", "TP0"),
        ("host_pools", "TP0"),
        ("ready", None),
        ("first_prefill", None),
        ("steady", None),
    ]
    at = {phase.phase: phase.at_unix_seconds - samples.START for phase in verdict.phases}
    assert (at["ready"], at["first_prefill"], at["steady"]) == (59.5, 69, 369)
    assert not any(phase.at_or_before for phase in verdict.phases)


def test_peaks_are_kept_by_phase() -> None:
    reconciler = Reconciler()
    rank = [reconciler.update(sample) for sample in a_start()][-1].ranks[0]
    peaks = {peak.phase: round((peak.process_bytes or 0) / GIB, 1) for peak in rank.peaks}
    assert peaks["start"] == 95, "loading weights takes more than they hold"
    assert (peaks["weights"], peaks["pool"], peaks["graphs"], peaks["host_pools"]) == (91.9, 116.6, 118.6, 118.6)
    assert list(peaks)[-3:] == ["ready", "first_prefill", "steady"]
    assert rank.line("hbm.peak_process").seen == 137 * GB
    assert rank.line("hbm.peak_gpu").seen == 138 * GB, "the whole GPU: total less free"
    assert "pool 116.60" in rank.line("hbm.peak_process").detail


def test_a_server_that_worked_before_ranktop_came_is_steady() -> None:
    verdict = changes.judge(story(1))
    assert phases(verdict) == [("ready", None), ("first_prefill", None), ("steady", None)]
    assert all(phase.at_or_before for phase in verdict.phases)
    assert [peak.phase for peak in verdict.ranks[0].peaks] == ["steady"]


def test_an_idle_server_is_ready_and_no_more() -> None:
    def idle(sample: Sample) -> Sample:
        page = sample.metrics[samples.SERVER]
        points = tuple((key, 0.0 if key.name == "sglang:num_running_reqs" else value) for key, value in page.points)
        return replace(sample, metrics={samples.SERVER: samples.with_points(page, points)})

    assert phases(changes.judge(story(400, idle, step=100))) == [("ready", None)]


def test_a_new_start_forgets_the_phases_before() -> None:
    reconciler = Reconciler()
    for sample in a_start():
        reconciler.update(sample)
    again = reconciler.update(starting(400, of_server("server_args", 400.0, args={}), gib=0.5))
    assert phases(again) == [("start", None)]


def test_the_launch_before_read_late_is_no_new_start() -> None:
    reconciler = Reconciler()
    reconciler.update(samples.healthy(0))
    late = reconciler.update(events(samples.healthy(5), of_server("server_args", -9000.0, args={})))
    assert ("steady", None) in phases(late)


def test_a_log_that_is_read_after_the_page_gives_the_times() -> None:
    """The page says ready at once; the log, a moment later, since when, and what came before."""
    reconciler = Reconciler()
    reconciler.update(samples.healthy(1000))
    log = [
        of_server("server_args", 0.0, args={}),
        event("weights_end", 20, rank="TP0"),
        of_server("ready", 60),
        event("prefill_batch", 900, rank="TP0"),
    ]
    verdict = reconciler.update(events(samples.healthy(1001), *log))
    at = {phase.phase: phase.at_unix_seconds - samples.START for phase in verdict.phases}
    assert at == {"start": 0, "weights": 20, "ready": 60, "first_prefill": 900}, "not steady before 1200"


def test_another_main_process_starts_over() -> None:
    reconciler = Reconciler()
    reconciler.update(samples.healthy(0))
    restarted = changes.loading(samples.healthy(5))
    assert restarted.processes is not None
    main = replace(restarted.processes.servers[0], start_ticks=999)
    verdict = reconciler.update(replace(restarted, processes=replace(restarted.processes, servers=(main,))))
    assert verdict.phases == ()


def test_the_rest_is_held_against_its_own_baseline() -> None:
    """What is neither weights, pool nor graphs: planned is the highest value until steady."""
    verdict = changes.judge(changes.moving(20, lambda s, at: used(with_graphs(s), 2, at * GIB // 10), step=10))
    line = verdict.ranks[2].line("hbm.rest")
    assert line.planned is not None
    assert (line.difference, line.status) == (2 * GIB, "over")
    assert verdict.ranks[3].line("hbm.rest").status == "ok"


def test_without_nvml_there_are_no_peaks() -> None:
    line = changes.judge(story(1, lambda s: replace(s, gpus=None))).ranks[0].line("hbm.peak_process")
    assert (line.seen, line.status) == (None, "unknown")
    assert line.detail
