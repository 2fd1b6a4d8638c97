"""Ranks that end, and ranks that come back: what is an alarm, and what an orderly end or a new launch."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ranktop.sample import Event, RankProcess, Sample
from support import changes, samples
from support.changes import event, events, found, judge, only

ALL = tuple(f"TP{tp}" for tp in range(8))


def restarted(sample: Sample, *tps: int, main: bool = False) -> Sample:
    """These ranks (all when none is named) are new processes."""

    def again(rank: RankProcess) -> RankProcess:
        return replace(rank, pid=rank.pid + 1000, start_ticks=rank.start_ticks + 50_000)

    sample = changes.ranks(sample, again, *tps)
    assert sample.processes is not None
    if not main:
        return sample
    servers = tuple(replace(server, pid=5200, start_ticks=50_100) for server in sample.processes.servers)
    return replace(sample, processes=replace(sample.processes, servers=servers))


def signal(at: float, name: str) -> Event:
    return replace(event("signal", at, text=f"{name} received", signal=name), server=samples.SERVER)


CRASH = event("traceback", 0.5, rank="TP5", text="RuntimeError: CUDA error: unspecified", error_type="RuntimeError")
OOM = event("oom_kill", 0.5, rank="TP5", pid=samples.pid_of(5), comm="sglang::schedul")


@pytest.mark.parametrize(
    ("said", "expected", "words"),
    [
        pytest.param(None, "critical", "while its server's main process lives", id="nothing said"),
        pytest.param(signal(0.5, "SIGTERM"), "info", "after SIGTERM", id="draining"),
        pytest.param(OOM, "critical", "killed by the kernel for memory", id="killed"),
        pytest.param(CRASH, "critical", "RuntimeError", id="an exception"),
        pytest.param(replace(CRASH, rank="TP1"), "critical", "on TP1", id="another rank's exception"),
        pytest.param(signal(-4000, "SIGTERM"), "critical", "lives", id="a SIGTERM of an hour ago"),
    ],
)
def test_one_rank_goes(said: Event | None, expected: str, words: str) -> None:
    told = events(samples.healthy(1), *([said] if said is not None else []))
    finding = only(judge([samples.healthy(0), told, samples.without_rank(samples.healthy(2), 5)]), "RANK-DEAD")
    assert (finding.severity, finding.ranks) == (expected, ("TP5",))
    assert words in finding.message


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(None, "info", id="nothing said"),
        pytest.param(signal(0.5, "SIGTERM"), "info", id="SIGTERM"),
        pytest.param(signal(0.5, "SIGQUIT"), "critical", id="SIGQUIT: a child failed"),
        pytest.param(CRASH, "critical", id="an exception"),
        pytest.param(OOM, "critical", id="a kill"),
    ],
)
def test_the_whole_server_goes(said: Event | None, expected: str) -> None:
    told = events(samples.healthy(1), *([said] if said is not None else []))
    after = changes.without_server(samples.healthy(2))
    assert found(judge([samples.healthy(0), told, after]), "RANK-DEAD") == [(expected, ALL)]


def test_an_exception_while_stopping_is_orderly() -> None:
    told = events(samples.healthy(1), signal(0.2, "SIGTERM"), CRASH)
    after = changes.without_server(samples.healthy(2))
    assert found(judge([samples.healthy(0), told, after]), "RANK-DEAD") == [("info", ALL)]


def test_an_orderly_end_is_told_for_ten_minutes() -> None:
    story = [samples.healthy(0), *(changes.without_server(samples.healthy(at)) for at in (1, 300))]
    assert found(judge(story), "RANK-DEAD") == [("info", ALL)]
    later = [changes.without_server(samples.healthy(at)) for at in (700, 701, 702, 703)]
    assert found(judge([*story, *later]), "RANK-DEAD") == []


def test_a_main_process_may_outlive_all_its_ranks_by_a_moment() -> None:
    """Then it is gone too, or it is not."""

    def no_ranks(seconds: int) -> Sample:
        sample = samples.healthy(seconds)
        assert sample.processes is not None
        return replace(sample, processes=replace(sample.processes, ranks=()), mappings={})

    assert found(judge([samples.healthy(0), no_ranks(1)]), "RANK-DEAD") == []
    gone = [changes.without_server(samples.healthy(at)) for at in (2, 3)]
    assert found(judge([samples.healthy(0), no_ranks(1), *gone]), "RANK-DEAD") == [("info", ALL)]
    assert found(judge([samples.healthy(0), *(no_ranks(at) for at in range(1, 6))]), "RANK-DEAD") == [("critical", ALL)]


def test_a_rank_that_came_back_alone() -> None:
    finding = only(judge([samples.healthy(0), restarted(samples.healthy(1), 5)]), "RANK-RESTARTED")
    assert (finding.severity, finding.ranks) == ("warn", ("TP5",))
    assert (finding.evidence["pid_before"], finding.evidence["pid"]) == (samples.pid_of(5), samples.pid_of(5) + 1000)


def test_a_server_that_was_started_again_is_a_launch() -> None:
    between = changes.without_server(samples.healthy(2))
    again = restarted(samples.healthy(60), main=True)
    verdict = judge([samples.healthy(0), between, again])
    assert found(verdict, "RANK-RESTARTED") == [("info", ALL)]
    crashed = judge([events(samples.healthy(0), replace(CRASH, at_unix_seconds=samples.START)), between, again])
    assert found(crashed, "RANK-RESTARTED") == [("warn", ALL)]


def test_the_same_processes_are_no_restart_and_an_old_one_is_forgotten() -> None:
    assert found(judge([samples.healthy(0), samples.healthy(1)]), "RANK-RESTARTED") == []
    unread = replace(samples.healthy(1), processes=None)
    assert found(judge([samples.healthy(0), unread, samples.healthy(2)]), "RANK-RESTARTED") == []
    later = [restarted(samples.healthy(at), 5) for at in (1, 1000, 1001, 1002, 1003)]
    assert found(judge([samples.healthy(0), *later]), "RANK-RESTARTED") == []


def test_a_rollout_says_nothing_above_info() -> None:
    """SIGTERM, unpinning for a minute, half a minute of nothing, loading, ready."""

    def ending(seconds: int) -> Sample:
        sample = samples.healthy(seconds)
        assert sample.processes is not None
        sample = replace(sample, processes=replace(sample.processes, servers=()), metrics={}, infos={})
        return changes.ranks(sample, lambda rank: replace(rank, state="D", orphan=True))

    def filling(seconds: int) -> Sample:
        resident = min(144_150_000_000, (seconds - 100) * 2 * 10**9)
        sample = changes.ranks(
            restarted(samples.healthy(seconds), main=True), lambda r: replace(r, rss_shmem_bytes=resident)
        )
        left = 1500 * 10**9 - 8 * resident
        return changes.loading(changes.host(sample, available_bytes=left))

    def fix(sample: Sample) -> Sample:
        """Pools and pages of the new processes are those of the new pids."""
        return replace(
            sample,
            mappings={
                pid + 1000: tuple(replace(m, pid=pid + 1000) for m in maps) for pid, maps in sample.mappings.items()
            },
            placements={pid + 1000: placed for pid, placed in sample.placements.items()},
        )

    story = [
        *(samples.healthy(at) for at in range(4)),
        events(samples.healthy(4), signal(4, "SIGTERM")),
        *(ending(at) for at in range(5, 66, 2)),
        *(changes.without_server(samples.healthy(at)) for at in range(66, 100, 3)),
        *(fix(filling(at)) for at in range(100, 180, 2)),
        *(fix(restarted(samples.healthy(at), main=True)) for at in range(180, 240, 4)),
    ]
    worst: set[tuple[str, str]] = set()
    reconciler = changes.Reconciler()
    for sample in story:
        worst |= {(finding.code, finding.severity) for finding in reconciler.update(sample).findings}
    assert {severity for _, severity in worst} == {"info"}, worst
    assert {"HOST-POOL-LOADING", "HOST-TEARDOWN", "RANK-RESTARTED", "RANK-DEAD"} <= {code for code, _ in worst}
