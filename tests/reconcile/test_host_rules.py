"""Rules on host memory: what fires, what nearly does, what stays silent for want of an input."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ranktop.plan.plan import GIB
from ranktop.sample import Pressure, Sample
from support import changes, samples
from support.changes import event, events, found, judge, moving, only, story

PRIMARY = 120_000_012_288
INDEXER = 24_147_002_880
GB = 10**9


def test_a_healthy_hour_says_nothing() -> None:
    """Ready, first traffic, page cache filling a pod, a sample every half minute."""
    reconciled = judge(
        moving(
            3600,
            lambda s, at: changes.cgroup(s, current_bytes=1150 * GB + at * 10**7, inactive_file_bytes=at * 10**7),
            step=30,
        )
    )
    assert reconciled.findings == ()


# HOST-CGROUP


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"current_bytes": 1250 * GB}, [("warn", ())], id="working set 1210 of 1300 GB"),
        pytest.param({"current_bytes": 1209 * GB}, [], id="1169 GB: just below nine tenths"),
        pytest.param({"current_bytes": 1299 * GB, "inactive_file_bytes": 200 * GB}, [], id="page cache fills it"),
        pytest.param({"current_bytes": 1250 * GB, "limit_bytes": None}, [], id="no limit"),
        pytest.param({"current_bytes": 1250 * GB, "inactive_file_bytes": None}, [], id="memory.stat not readable"),
    ],
)
def test_cgroup(fields: dict[str, int | None], expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert found(judge(story(2, lambda s: changes.cgroup(s, **fields))), "HOST-CGROUP") == expected


def test_a_cgroup_that_fills_within_minutes_is_critical() -> None:
    rising = moving(60, lambda s, at: changes.cgroup(s, current_bytes=1230 * GB + at * GB // 2))
    finding = only(judge(rising), "HOST-CGROUP")
    assert finding.severity == "critical"
    assert finding.evidence["time_to_limit_seconds"] == pytest.approx(160, rel=0.02), "80 GB at 0.5 GB/s"
    slowly = moving(60, lambda s, at: changes.cgroup(s, current_bytes=1230 * GB + at * GB // 20))
    assert found(judge(slowly), "HOST-CGROUP") == [("warn", ())]


def test_a_kill_in_the_cgroup_is_critical_and_reaching_the_limit_is_not() -> None:
    killed = moving(4, lambda s, at: changes.cgroup(s, oom_kill_count=int(at >= 3), oom_count=int(at >= 3)))
    assert found(judge(killed), "HOST-CGROUP") == [("critical", ())]
    before_us = story(4, lambda s: changes.cgroup(s, oom_kill_count=3, oom_count=3))
    assert found(judge(before_us), "HOST-CGROUP") == [], "counted before ranktop looked"
    reached = moving(4, lambda s, at: changes.cgroup(s, max_count=7 * at))
    assert found(judge(reached), "HOST-CGROUP") == [("info", ())]


def test_ranks_in_several_cgroups_under_one_limit_are_added() -> None:
    def two_containers(sample: Sample) -> Sample:
        one = changes.cgroup(sample, current_bytes=640 * GB)
        halves = {
            pid: replace(group, path=f"{changes.POD}/{index // 4}")
            for index, (pid, group) in enumerate(one.cgroups.items())
        }
        return replace(one, cgroups=halves)

    line = judge(story(1, two_containers)).node.line("host.cgroup")
    assert (line.seen, line.planned, line.status) == (1200 * GB, 1300 * GB, "over")


# HOST-HEADROOM, NUMA-NODE-FULL


def test_the_pod_is_the_limit_when_it_leaves_less_than_the_host() -> None:
    def tight(sample: Sample) -> Sample:
        for tp in range(8):
            sample = samples.with_pool(sample, tp, PRIMARY)
        return changes.loading(changes.cgroup(sample))

    finding = only(judge(story(1, tight)), "HOST-HEADROOM")
    assert finding.severity == "breach"
    assert finding.evidence["limit"] == f"cgroup {changes.POD}"
    assert finding.evidence["headroom_bytes"] == 140 * GB, "1300 - (1200 - 40 GB of page cache)"
    assert finding.evidence["short_bytes"] == 8 * INDEXER + 10 * GIB - 140 * GB
    assert finding.message.startswith(
        "193.18 GB of planned pools are still to come beside 10.74 GB of reserve, and 140.00"
    )
    assert finding.message.endswith(f"GB can be taken (cgroup {changes.POD})"), "a path is longer than a row"


@pytest.mark.parametrize(("own_limit_gb", "expected"), [(4000, None), (1250, 4 * INDEXER)])
def test_a_pods_limit_is_held_against_the_ranks_in_it(own_limit_gb: int, expected: int | None) -> None:
    """TP4 to TP7 still allocate, in a pod of their own; that of TP0 to TP3 is nearly full, and has room for TP3's."""

    def two_pods(sample: Sample) -> Sample:
        for tp in range(3, 8):
            sample = samples.with_pool(sample, tp, PRIMARY)
        loading = changes.loading(changes.cgroup(sample))
        pods = {
            samples.pid_of(tp): replace(
                loading.cgroups[samples.pid_of(tp)],
                path=f"/pod{tp // 4}",
                limit_path=f"/pod{tp // 4}",
                limit_bytes=(own_limit_gb if tp > 3 else 1200) * GB,
            )
            for tp in range(8)
        }
        return replace(loading, cgroups=pods)

    verdict = judge(story(1, two_pods))
    if expected is None:
        assert found(verdict, "HOST-HEADROOM") == []
        return
    finding = only(verdict, "HOST-HEADROOM")
    assert (finding.evidence["limit"], finding.evidence["still_to_allocate_bytes"]) == ("cgroup /pod1", expected)


def test_mapped_pools_that_are_not_filled_yet_are_still_to_come() -> None:
    def half(sample: Sample) -> Sample:
        empty = changes.ranks(sample, lambda rank: replace(rank, rss_shmem_bytes=72 * GB))
        return changes.loading(changes.host(empty, available_bytes=580 * GB))

    finding = only(judge(story(1, half)), "HOST-HEADROOM")
    assert finding.evidence["still_to_allocate_bytes"] == 8 * (PRIMARY + INDEXER - 72 * GB)
    roomy = story(1, lambda s: changes.host(half(s), available_bytes=620 * GB))
    assert found(judge(roomy), "HOST-HEADROOM") == []


def test_no_more_is_to_come_than_was_planned() -> None:
    """TP3 maps nearly twice its pool, and nothing is filled: what is over the plan is told by HOST-POOL-OVER."""

    def oversized(sample: Sample) -> Sample:
        empty = changes.ranks(sample, lambda rank: replace(rank, rss_shmem_bytes=0))
        larger = samples.with_pool(empty, 3, 2 * PRIMARY - (1 << 30), INDEXER)
        return changes.loading(changes.host(larger, available_bytes=580 * GB))

    finding = only(judge(story(1, oversized)), "HOST-HEADROOM")
    assert finding.evidence["still_to_allocate_bytes"] == 8 * (PRIMARY + INDEXER)


def bound(sample: Sample, free_gb: int) -> Sample:
    """Ranks 4 to 7 bound to node 1 without their indexer pools."""
    assert sample.numa is not None
    for tp in range(4, 8):
        sample = samples.with_pool(sample, tp, PRIMARY)
    nodes = tuple(
        replace(node, cpus=f"{64 * node.node}-{64 * node.node + 63}", free_bytes=free_gb * GB, watermark_low_bytes=GB)
        for node in sample.numa or ()
    )
    return changes.loading(
        changes.ranks(replace(sample, numa=nodes), lambda rank: replace(rank, cpus_allowed="64-127"), 4, 5, 6, 7)
    )


def test_a_node_that_cannot_hold_its_ranks_is_full() -> None:
    finding = only(judge(story(1, lambda s: bound(s, 90))), "NUMA-NODE-FULL")
    assert (finding.severity, finding.evidence["node"], finding.evidence["bound_ranks"]) == ("critical", 1, 4)
    assert finding.evidence["headroom_bytes"] == 89 * GB, "less the watermark"
    assert found(judge(story(1, lambda s: bound(s, 98))), "NUMA-NODE-FULL") == []
    loose = story(1, lambda s: changes.ranks(bound(s, 90), lambda rank: replace(rank, cpus_allowed="0-127")))
    assert found(judge(loose), "NUMA-NODE-FULL") == [], "not bound: the other node serves"
    assert found(judge(story(1, lambda s: replace(bound(s, 90), numa=None))), "NUMA-NODE-FULL") == []


def falling_node(sample: Sample, at: int, cpus: str = "64-127") -> Sample:
    """Ready, every pool there, and node 1 loses 0.5 GB a second of its last 60 GB; TP4 to TP7 are bound to it."""
    nodes = tuple(
        replace(node, cpus=f"{64 * node.node}-{64 * node.node + 63}", free_bytes=(90 - node.node * 30) * GB)
        for node in sample.numa or ()
    )
    one = replace(nodes[1], free_bytes=60 * GB - at * GB // 2)
    moved = replace(sample, numa=(nodes[0], one))
    return changes.ranks(moved, lambda rank: replace(rank, cpus_allowed=cpus), 4, 5, 6, 7)


def test_a_node_that_runs_out_is_told_where_ranks_are_bound_to_it() -> None:
    finding = only(judge(moving(60, falling_node)), "HOST-HEADROOM")
    assert (finding.severity, finding.evidence["limit"]) == ("critical", "NUMA node 1")
    assert finding.evidence["time_to_limit_seconds"] == pytest.approx(60, rel=0.05), "30 GB at 0.5 GB/s"
    loose = moving(60, lambda s, at: falling_node(s, at, "0-127"))
    assert found(judge(loose), "HOST-HEADROOM") == [], "the other node serves"
    still = moving(60, lambda s, at: falling_node(s, 60))
    assert found(judge(still), "HOST-HEADROOM") == [], "it does not fall"


# HOST-PRESSURE, HOST-SWAP


def pressed(some: float, full: float = 0.0, minute: float = 0.0) -> Pressure:
    return Pressure(
        some_avg10_percent=some,
        full_avg10_percent=full,
        some_avg60_percent=minute,
        full_avg60_percent=min(full, minute),
    )


@pytest.mark.parametrize(
    ("seconds", "pressure", "expected"),
    [
        pytest.param(32, pressed(6.0), [("warn", ())], id="half a minute"),
        pytest.param(32, pressed(6.0, 5.5), [("critical", ())], id="every task"),
        pytest.param(32, pressed(4.9), [], id="below"),
        pytest.param(20, pressed(6.0), [], id="not long enough"),
        pytest.param(2, pressed(6.0, minute=5.5), [("warn", ())], id="two looks, but the mean of a minute says so"),
        pytest.param(32, None, [], id="no PSI"),
    ],
)
def test_pressure(seconds: int, pressure: Pressure | None, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert found(judge(story(seconds, lambda s: changes.host(s, pressure=pressure))), "HOST-PRESSURE") == expected


def test_a_minute_before_a_calm_half_is_no_pressure() -> None:
    """The kernel's mean of a minute counts only where less than that was seen."""

    def dipping(sample: Sample, at: int) -> Sample:
        return changes.host(sample, pressure=pressed(1.0 if 15 <= at <= 20 else 6.0, minute=5.5))

    assert found(judge(moving(32, dipping)), "HOST-PRESSURE") == []


def test_pressure_of_the_ranks_own_cgroup_decides() -> None:
    def own(sample: Sample, some: float) -> Sample:
        return changes.host(changes.cgroup(sample, pressure=pressed(some)), pressure=pressed(40.0, 20.0))

    assert found(judge(story(32, lambda s: own(s, 0.5))), "HOST-PRESSURE") == [], "another tenant stalls"
    finding = only(judge(story(32, lambda s: own(s, 7.0))), "HOST-PRESSURE")
    assert (finding.severity, finding.evidence["where"]) == ("warn", f"{changes.POD}/container")


def test_pressure_while_loading_is_ordinary() -> None:
    assert (
        found(judge(story(32, lambda s: changes.loading(changes.host(s, pressure=pressed(30.0))))), "HOST-PRESSURE")
        == []
    )


def test_swapping_out_steadily() -> None:
    def swapping(pages_a_second: int) -> list[Sample]:
        return moving(33, lambda s, at: changes.host(s, swap_out_pages=1000 + pages_a_second * at))

    assert found(judge(swapping(300)), "HOST-SWAP") == [("warn", ())], "1.2 MB/s"
    assert found(judge(swapping(200)), "HOST-SWAP") == [], "0.8 MB/s"
    burst = moving(33, lambda s, at: changes.host(s, swap_out_pages=1000 + 40_000 * int(at >= 10)))
    assert found(judge(burst), "HOST-SWAP") == [], "one burst"
    assert found(judge(story(33)), "HOST-SWAP") == [], "not told"


@pytest.mark.parametrize(
    ("reserve_bytes", "expected"), [(None, 10 * GIB), pytest.param(10 << 20, 10 << 20, id="a stand-in's small host")]
)
def test_a_refused_pool_names_the_reserve_of_this_host(reserve_bytes: int | None, expected: int) -> None:
    refused = event("host_pool_failed", 0.5, server=samples.SERVER, rank="TP1", asked_gb=96.0, free_gb=90.5)
    finding = only(
        judge([events(changes.host(samples.healthy(1), reserve_bytes=reserve_bytes), refused)]), "PLAN-HOST-GATE"
    )
    assert (finding.severity, finding.rank) == ("breach", "TP1")
    assert finding.evidence["reserve_bytes"] == expected
    assert finding.evidence["needed_bytes"] == 96_000_000_000 + expected


@pytest.mark.parametrize(
    ("asked_gb", "free_gb", "told"),
    [
        (0.01, 0.0, "a pool was refused: 10.5 MB + 10.5 MB reserve = 21.0 MB > under 5 MB available"),
        (0.03, 0.02, "a pool was refused: about 30 MB + 10.5 MB reserve = 40.5 MB > about 20 MB available"),
        (96.0, 90.5, "a pool was refused: 96.00 GB + 10.5 MB reserve = 96.01 GB > 90.50 GB available"),
    ],
    ids=["a pool of the plan", "another pool", "large"],
)
def test_a_small_refused_pool_is_told_in_its_unit(asked_gb: float, free_gb: float, told: str) -> None:
    """SGLang logs two decimals of a GB: `0.01 GB + 0.00 GB reserve` says nothing."""
    small = samples.LAUNCH.replace("--hicache-size 120", "--hicache-size 0.05")
    sample = changes.host(samples.healthy(1), reserve_bytes=10_500_000)
    assert sample.processes is not None
    servers = tuple(replace(server, argv=tuple(small.split())) for server in sample.processes.servers)
    sample = replace(sample, processes=replace(sample.processes, servers=servers))
    refused = event("host_pool_failed", 0.5, rank="TP1", asked_gb=asked_gb, free_gb=free_gb)
    assert only(judge([events(sample, refused)]), "PLAN-HOST-GATE").message == told


def test_a_refused_pool_explains_the_death_of_its_rank() -> None:
    refused = event("host_pool_failed", 0.5, rank="TP1", asked_gb=96.0, free_gb=90.5)
    why = (
        "ValueError: Not enough host memory for DSA indexer hierarchical cache. Requesting 96.00 GB but only have "
        "90.50 GB free. Please reduce the size of the hierarchical cache."
    )
    died = event("traceback", 0.5, text=why, rank="TP1")
    story = [samples.healthy(0), samples.healthy(1)]
    gone = samples.without_rank(samples.healthy(2), 1)
    verdict = judge([*story, events(gone, refused, died)])
    dead = only(verdict, "RANK-DEAD")
    assert dead.causes == ("PLAN-HOST-GATE",)
    assert only(verdict, "PLAN-HOST-GATE").effects == ("RANK-DEAD",)
    assert "Requesting 96.00 GB but only have 90.50 GB free" in dead.message
