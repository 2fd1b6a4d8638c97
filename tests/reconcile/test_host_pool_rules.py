"""Rules on host pools: pinned, filling, unexplained, unreachable, leaking beside them, and in their end."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ranktop.sample import Sample, SeriesKey
from support import changes, samples
from support.changes import event, events, found, judge, moving, only, story

PRIMARY = 120_000_012_288
INDEXER = 24_147_002_880
GB = 10**9


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
        return replace(sample, metrics={samples.SERVER: samples.with_points(told, points)}) if l2_grows else sample

    return moving(1860, change, step=30)


def test_a_leak_meets_the_limit_of_its_own_pod() -> None:
    """TP2's pod has 100 GB left, which is less than the host has; that of TP4 to TP7 is nearly full."""

    def two_pods(sample: Sample) -> Sample:
        one = changes.cgroup(sample, current_bytes=1000 * GB, inactive_file_bytes=0, active_file_bytes=0)
        pods = {
            samples.pid_of(tp): replace(
                one.cgroups[samples.pid_of(tp)],
                path=f"/pod{tp // 4}",
                limit_path=f"/pod{tp // 4}",
                limit_bytes=(1100 if tp < 4 else 1005) * GB,
            )
            for tp in range(8)
        }
        return replace(one, cgroups=pods)

    finding = only(judge(two_pods(sample) for sample in leaking(1.2e9)), "HOST-ANON-LEAK")
    assert finding.evidence["limit"] == "cgroup /pod0"
    assert finding.evidence["time_to_limit_hours"] == pytest.approx(100 / 1.2, rel=0.01)


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


# HOST-UNREACHABLE-POOL


def refusing(used_tokens: int, dropped_a_second: int, *, grows: int = 0) -> list[Sample]:
    """L2 of 2,345,216 tokens at so many, while tokens find no room."""

    def change(sample: Sample, at: int) -> Sample:
        page = sample.metrics[samples.SERVER]
        points = tuple(
            (key, float(used_tokens + grows * at)) if key.name == "sglang:hicache_host_used_tokens" else (key, value)
            for key, value in page.points
        )
        labels = (("engine_type", "unified"), ("reason", "host_alloc_failed"), ("tp_rank", "0"))
        dropped = (SeriesKey("sglang:hicache_dropped_tokens_total", labels), float(dropped_a_second * at))
        return replace(sample, metrics={samples.SERVER: samples.with_points(page, (*points, dropped))})

    return moving(660, change, step=30)


def test_a_pool_that_never_fills_while_tokens_are_dropped() -> None:
    finding = only(judge(refusing(1_170_000, 50)), "HOST-UNREACHABLE-POOL")
    assert finding.severity == "warn"
    assert "50 % of its size" in finding.message
    assert found(judge(refusing(1_170_000, 0)), "HOST-UNREACHABLE-POOL") == [], "nothing is dropped"
    assert found(judge(refusing(1_900_000, 50)), "HOST-UNREACHABLE-POOL") == [], "81 %: nearly full"
    assert found(judge(refusing(1_000_000, 50, grows=500)), "HOST-UNREACHABLE-POOL") == [], "it is filling"
    assert found(judge(refusing(1_170_000, 50)[:12]), "HOST-UNREACHABLE-POOL") == [], "five and a half minutes"
