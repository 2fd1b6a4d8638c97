"""Rules on host memory: what fires, what nearly does, what stays silent for want of an input."""

from __future__ import annotations

from typing import Any

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


def test_mapped_pools_that_are_not_filled_yet_are_still_to_come() -> None:
    def half(sample: Sample) -> Sample:
        empty = changes.ranks(sample, lambda rank: replace(rank, rss_shmem_bytes=72 * GB))
        return changes.loading(changes.host(empty, available_bytes=580 * GB))

    finding = only(judge(story(1, half)), "HOST-HEADROOM")
    assert finding.evidence["still_to_allocate_bytes"] == 8 * (PRIMARY + INDEXER - 72 * GB)
    roomy = story(1, lambda s: changes.host(half(s), available_bytes=620 * GB))
    assert found(judge(roomy), "HOST-HEADROOM") == []


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


# HOST-OOM-KILL

KILL: dict[str, Any] = {
    "pid": samples.pid_of(5),
    "comm": "sglang::schedul",
    "memcg": True,
    "anon_rss_bytes": 9 * GB,
    "shmem_rss_bytes": 144 * GB,
    "constraint": "CONSTRAINT_MEMCG",
    "oom_memcg": changes.POD,
    "task_memcg": f"{changes.POD}/container",
}


def test_a_kill_names_victim_constraint_limit_and_group() -> None:
    told = events(changes.cgroup(samples.healthy(1), oom_group=True), event("oom_kill", 0.5, rank="TP5", **KILL))
    finding = only(judge([changes.cgroup(samples.healthy(0)), told]), "HOST-OOM-KILL")
    assert (finding.severity, finding.ranks) == ("critical", ("TP5",))
    assert finding.evidence["constraint"] == "CONSTRAINT_MEMCG"
    assert (finding.evidence["limit_bytes"], finding.evidence["oom_group"]) == (1300 * GB, True)
    assert finding.evidence["shmem_rss_bytes"] == 144 * GB
    assert finding.evidence["grew_last_confidence"] == "unknown"


def test_who_grew_last_is_not_the_victim() -> None:
    """TP2's heap takes what the host loses; TP5 is killed, being the largest of equals."""

    def growing(sample: Sample, at: int) -> Sample:
        sample = changes.host(sample, available_bytes=346 * GB - at * GB)
        sample = changes.ranks(sample, lambda rank: replace(rank, rss_anon_bytes=9 * GB + at * 9 * GB // 10), 2)
        return events(sample, event("oom_kill", 20, rank="TP5", **KILL)) if at == 20 else sample

    finding = only(judge(moving(20, growing)), "HOST-OOM-KILL")
    assert (finding.evidence["grew_last"], finding.evidence["grew_last_confidence"]) == ("TP2", "likely")
    assert finding.evidence["grew_last_bytes"] == 18 * GB


def test_a_kill_in_another_tenants_cgroup_is_no_alarm() -> None:
    other: dict[str, Any] = KILL | {
        "pid": 77,
        "oom_memcg": "/kubepods.slice/pod9",
        "task_memcg": "/kubepods.slice/pod9/c",
    }
    told = events(changes.cgroup(samples.healthy(1)), event("oom_kill", 0.5, **other))
    assert found(judge([told]), "HOST-OOM-KILL") == [("info", ())]
    blind = events(samples.healthy(1), event("oom_kill", 0.5, **other))
    assert found(judge([blind]), "HOST-OOM-KILL") == [("critical", ())], "whose cgroup it is cannot be told"


def test_a_kill_without_the_kernels_log_is_counted() -> None:
    counted = moving(3, lambda s, at: changes.host(s, oom_kill_count=4 + int(at >= 2)))
    assert only(judge(counted), "HOST-OOM-KILL").evidence["kills"] == 1
    assert found(judge(story(3, lambda s: changes.host(s, oom_kill_count=4))), "HOST-OOM-KILL") == []


def test_an_old_kill_is_history() -> None:
    old = events(samples.healthy(1), event("oom_kill", -4000, **KILL))
    assert found(judge([old]), "HOST-OOM-KILL") == []


# HOST-NOT-PINNED


def test_a_failed_registration_names_rank_size_and_return_code() -> None:
    failed = event("pin_failed", 0.5, rank="TP3", rc=1, size_bytes=531_470_745_600)
    finding = only(judge([events(samples.healthy(1), failed)]), "HOST-NOT-PINNED")
    assert (finding.severity, finding.ranks, finding.evidence["rc"]) == ("breach", ("TP3",), 1)
    assert "531.47 GB" in finding.message
    kernel = event("pin_failed", 0.4, text="Cannot map memory with base addr 0x7f and size of 0x10 pages", pages=16)
    assert len(judge([events(samples.healthy(1), failed, kernel)]).findings) == 1, "the kernel tells the same failure"
    assert found(judge([events(samples.healthy(1), kernel)]), "HOST-NOT-PINNED") == [("breach", ())]


def test_pins_below_the_mapped_pools() -> None:
    def pins(pages: int) -> list[Sample]:
        return story(32, lambda s: changes.host(s, foll_pin_acquired_pages=pages, foll_pin_released_pages=0))

    mapped_pages = 8 * (PRIMARY + INDEXER) // 4096
    assert found(judge(pins(mapped_pages * 7 // 10)), "HOST-NOT-PINNED") == [("warn", ())]
    assert found(judge(pins(mapped_pages * 95 // 100)), "HOST-NOT-PINNED") == []
    assert found(judge(pins(0)), "HOST-NOT-PINNED") == [], "a driver whose pins do not count"
    few = story(10, lambda s: changes.host(s, foll_pin_acquired_pages=mapped_pages // 2, foll_pin_released_pages=0))
    assert found(judge(few), "HOST-NOT-PINNED") == [], "not long enough"
    no_driver = story(32, lambda s: replace(changes.host(s, foll_pin_acquired_pages=mapped_pages // 2), gpus=None))
    assert found(judge(no_driver), "HOST-NOT-PINNED") == []


# HOST-ANON-LEAK, HOST-UNREACHABLE-POOL


def leaking(bytes_per_hour: float, *, page: bool = True, wave: int = 0, l2_grows: int = 0) -> list[Sample]:
    def change(sample: Sample, at: int) -> Sample:
        anon = int(9 * GB + bytes_per_hour * at / 3600 + wave * (at // 30 % 2))
        sample = changes.ranks(sample, lambda rank: replace(rank, rss_anon_bytes=anon), 2)
        if not page:
            return replace(sample, metrics={})
        told = sample.metrics[samples.SERVER]
        points = tuple(
            (key, value - 2_000_000 + l2_grows * at) if key.name == "sglang:hicache_host_used_tokens" else (key, value)
            for key, value in told.points
        )
        return replace(sample, metrics={samples.SERVER: replace(told, points=points)}) if l2_grows else sample

    return moving(1860, change, step=30)


def test_a_heap_that_grows_while_pools_stand_still() -> None:
    finding = only(judge(leaking(1.2e9)), "HOST-ANON-LEAK")
    assert (finding.severity, finding.ranks) == ("warn", ("TP2",))
    assert finding.evidence["growth_bytes_per_hour"] == pytest.approx(1.2e9, rel=0.001)
    assert finding.evidence["time_to_limit_hours"] == pytest.approx(346 / 1.2, rel=0.01)
    assert found(judge(leaking(0.9e9)), "HOST-ANON-LEAK") == [], "below 1 GB an hour"
    assert found(judge(leaking(1.2e9, wave=GB)), "HOST-ANON-LEAK") == [], "up and down, no line"
    assert found(judge(leaking(1.2e9, page=False)), "HOST-ANON-LEAK") == [], "L2 may be filling"
    assert found(judge(leaking(1.2e9, l2_grows=600)), "HOST-ANON-LEAK") == [], "L2 is filling"
    assert found(judge(leaking(1.2e9)[:40]), "HOST-ANON-LEAK") == [], "20 minutes"


# HOST-POOL-LOADING


def filling(seconds: int, gb_per_second: float) -> list[Sample]:
    """All ranks fill their pools at once; the mappings are there from the start."""

    def change(sample: Sample, at: int) -> Sample:
        resident = min(PRIMARY + INDEXER, int(gb_per_second / 8 * at * GB))
        filled = changes.ranks(sample, lambda rank: replace(rank, rss_shmem_bytes=resident))
        return changes.loading(changes.host(filled, available_bytes=1400 * GB, foll_pin_acquired_pages=0))

    return moving(seconds, change)


def test_filling_pools_tells_progress_and_time_left() -> None:
    finding = only(judge(filling(30, 8.0)), "HOST-POOL-LOADING")
    assert finding.severity == "info"
    assert finding.evidence["done_bytes"] == 240 * GB
    assert finding.evidence["bytes_per_second"] == pytest.approx(8e9, rel=0.01)
    assert finding.evidence["seconds_left"] == pytest.approx((8 * (PRIMARY + INDEXER) - 240 * GB) / 8e9, abs=1)
    assert found(judge(filling(0, 8.0)), "HOST-POOL-LOADING") == [], "nothing filled yet"
    assert found(judge(story(3)), "HOST-POOL-LOADING") == [], "ready"


def test_registering_pools_shows_by_the_pins() -> None:
    def registering(sample: Sample, at: int) -> Sample:
        return changes.loading(
            changes.host(
                sample, available_bytes=300 * GB, foll_pin_acquired_pages=at * 1_000_000, foll_pin_released_pages=0
            )
        )

    finding = only(judge(moving(20, registering)), "HOST-POOL-LOADING")
    assert "registered" in finding.message
    assert finding.evidence["done_bytes"] == 20_000_000 * 4096


# HOST-SHM-UNEXPLAINED


def with_shared(sample: Sample, extra: int) -> Sample:
    block = samples.mapping(1, 0x7D0000000000, 1 << 33)
    own = (*sample.mappings[samples.pid_of(1)], replace(block, size_bytes=1 << 33))
    grown = changes.ranks(sample, lambda rank: replace(rank, rss_shmem_bytes=PRIMARY + INDEXER + extra), 1)
    return replace(grown, mappings=grown.mappings | {samples.pid_of(1): own})


def test_shared_memory_beyond_the_pools() -> None:
    finding = only(judge(story(1, lambda s: with_shared(s, 1 << 33))), "HOST-SHM-UNEXPLAINED")
    assert (finding.severity, finding.ranks) == ("info", ("TP1",))
    assert finding.evidence["power_of_two_bytes"] == 1 << 33
    assert "torch" in finding.message
    assert found(judge(story(1, lambda s: with_shared(s, 12 * GB))), "HOST-SHM-UNEXPLAINED") == [("warn", ("TP1",))]
    assert found(judge(story(1, lambda s: with_shared(s, 19 * 10**8))), "HOST-SHM-UNEXPLAINED") == []
    unread = story(1, lambda s: replace(with_shared(s, 12 * GB), mappings={}))
    assert found(judge(unread), "HOST-SHM-UNEXPLAINED") == []


# HOST-TEARDOWN


def test_a_rank_that_hangs_on_in_its_end() -> None:
    """Its server is gone; unpinning 144 GB takes up to 87 s."""

    def ending(sample: Sample, at: int) -> Sample:
        assert sample.processes is not None
        sample = replace(sample, processes=replace(sample.processes, servers=()), infos={}, metrics={})
        return changes.ranks(sample, lambda rank: replace(rank, state="D", orphan=True), 4)

    def severities(seconds: int) -> list[tuple[str, tuple[str, ...]]]:
        return found(judge([samples.healthy(0), *moving(seconds, ending, step=4)[1:]]), "HOST-TEARDOWN")

    assert severities(4) == []
    assert severities(60) == [("info", ("TP4",))]
    assert severities(240) == [("warn", ("TP4",))]


def test_a_process_that_is_gone_and_still_holds_its_gpu() -> None:
    """Out of /proc, and NVML still lists the pid."""
    after = [samples.without_rank(samples.healthy(at), 5) for at in range(1, 14)]
    finding = only(judge([samples.healthy(0), *after]), "HOST-TEARDOWN")
    assert finding.evidence["hbm_bytes"] == 137 * GB
    assert found(judge([samples.healthy(0), *after[:3]]), "HOST-TEARDOWN") == []


def test_uninterruptible_while_loading_is_registering() -> None:
    stuck = story(30, lambda s: changes.loading(changes.ranks(s, lambda rank: replace(rank, state="D"), 4)), step=2)
    assert found(judge(stuck), "HOST-TEARDOWN") == []
