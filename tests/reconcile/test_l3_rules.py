"""Rules on storage: prefetches that bring nothing, deadlines, ranks that drift apart, attachments."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ranktop.reconcile.thresholds import Thresholds
from ranktop.sample import Event, Processes, RankTag, Sample, SeriesKey, ServerInfo, ServerProcess, StorageDisk
from support import samples
from tests.reconcile.tier_story import RANKS, found, judge, severities, story, with_info, with_page


def prefetches(second: float, loaded: int, ranks: int = RANKS) -> tuple[Event, ...]:
    return tuple(
        Event(
            samples.START + second, "prefetch", "HiCache prefetch", samples.SERVER, f"TP{tp}", {"loaded_tokens": loaded}
        )
        for tp in range(ranks)
    )


def logged(count: int, loaded: int = 0, last: int = 0) -> list[Sample]:
    """One prefetch a rank every five seconds; the last one loads `last` tokens."""
    told = [replace(samples.healthy(5.0 * n), events=prefetches(5.0 * n, loaded)) for n in range(count)]
    return [*told[:-1], replace(told[-1], events=prefetches(5.0 * (count - 1), last))]


def storage(name: str, value: float, tp: int = 0, dp: int = 0, **labels: str) -> tuple[SeriesKey, float]:
    place = {"attn_cp_rank": "0", "dp_rank": str(dp), "pp_rank": "0", "storage_backend": "mooncake", "tp_rank": str(tp)}
    return SeriesKey(f"sglang:{name}", tuple(sorted((place | labels).items()))), value


def test_logged_prefetches_that_all_brought_nothing() -> None:
    (finding,) = found(judge(*logged(10)), "L3-PREFETCH-EMPTY")
    assert (finding.severity, finding.ranks) == ("warn", tuple(f"TP{tp}" for tp in range(RANKS)))
    assert severities(judge(*logged(9)), "L3-PREFETCH-EMPTY") == [], "too few"
    assert severities(judge(*logged(10, last=64)), "L3-PREFETCH-EMPTY") == [], "one brought something"
    assert severities(judge(samples.healthy()), "L3-PREFETCH-EMPTY") == [], "nothing was asked"


def test_a_store_that_holds_nothing_yet_cannot_give() -> None:
    told = [with_page(sample, storage("backuped_tokens_total", 0.0)) for sample in logged(20)]
    assert severities(judge(*told), "L3-PREFETCH-EMPTY") == []


def unfulfilled(seconds: float, reason: str, per_second: float, prefetched: float = 0.0) -> list[Sample]:
    return [
        with_page(
            sample,
            *(
                storage("storage_prefetch_unfulfilled_tokens_total", per_second * at, tp, reason=reason)
                for tp in range(RANKS)
            ),
            *(storage("prefetched_tokens_total", prefetched * at, tp) for tp in range(RANKS)),
        )
        for sample in story(seconds, {"input": 500})
        for at in [sample.at_unix_seconds - samples.START]
    ]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (unfulfilled(60, "host_capacity", 100), ["warn"]),
        (unfulfilled(60, "host_capacity", 100, prefetched=10), []),
        (unfulfilled(60, "below_threshold", 100), []),
        (unfulfilled(30, "host_capacity", 100), []),
    ],
)
def test_counted_prefetches_and_their_reasons(told: list[Sample], expected: list[str]) -> None:
    assert severities(judge(*told), "L3-PREFETCH-EMPTY") == expected


def test_the_reason_is_told_in_logical_tokens() -> None:
    (finding,) = found(judge(*unfulfilled(60, "host_capacity", 100)), "L3-PREFETCH-EMPTY")
    assert finding.evidence["tokens_by_reason"] == {"host_capacity": 6000}


def test_tokens_given_up_at_the_deadline() -> None:
    told = unfulfilled(60, "deadline", 10, prefetched=100)
    assert severities(judge(*told), "L3-DEADLINE") == ["warn"]
    assert severities(judge(*unfulfilled(60, "deadline", 0, prefetched=100)), "L3-DEADLINE") == []


L3 = {
    "model_path": "zai-org/GLM-5.2-FP8",
    "tp_size": 8,
    "enable_hierarchical_cache": True,
    "hicache_size": 120,
    "hicache_storage_backend": "mooncake",
    "hicache_storage_prefetch_policy": "timeout",
}


@pytest.mark.parametrize(("budget", "expected"), [(5.0, ["warn"]), (20.0, []), (None, [])])
def test_a_deadline_against_the_service_budget(budget: float | None, expected: list[str]) -> None:
    """Prompts of 32,768 tokens may wait 1 + 0.25 x 32 = 9 s."""
    told = [with_info(sample, **L3) for sample in story(60, {"requests": 1, "prompt": 32_768})]
    limits = Thresholds(prefetch_budget_seconds=budget)
    verdict = judge(*told, thresholds=limits)
    assert severities(verdict, "L3-DEADLINE") == expected
    if expected:
        assert found(verdict, "L3-DEADLINE")[0].evidence["deadline_seconds"] == pytest.approx(9.0)


def reading_ranks(seconds: float, behind_per_second: float) -> list[Sample]:
    """TP5 reads less by so many tokens a second."""
    return [
        with_page(
            sample,
            *(
                storage("prefetched_tokens_total", (100 - (behind_per_second if tp == 5 else 0)) * at, tp)
                for tp in range(RANKS)
            ),
        )
        for sample in story(seconds, {"input": 500})
        for at in [sample.at_unix_seconds - samples.START]
    ]


def test_ranks_that_drift_apart() -> None:
    (finding,) = found(judge(*reading_ranks(180, 20)), "L3-RANK-SKEW")
    assert (finding.severity, finding.evidence["behind_rank"]) == ("breach", "tp_rank 5")
    assert severities(judge(*reading_ranks(150, 20)), "L3-RANK-SKEW") == [], "two windows only"
    assert severities(judge(*reading_ranks(180, 0)), "L3-RANK-SKEW") == [], "all read the same"
    assert severities(judge(*reading_ranks(180, 2)), "L3-RANK-SKEW") == [], "a few tokens"


def test_ranks_that_are_apart_and_do_not_drift() -> None:
    told = reading_ranks(60, 20)
    page = told[-1].metrics[samples.SERVER]
    for second in range(90, 181, 30):
        later = replace(page, at_unix_seconds=samples.START + second)
        told.append(replace(samples.healthy(second), metrics={samples.SERVER: later}))
    assert severities(judge(*told), "L3-RANK-SKEW") == []


def two_groups(computed: float, with_storage: tuple[int, ...]) -> Sample:
    points = [storage("backuped_tokens_total", 5000.0, dp=dp) for dp in with_storage]
    for dp in range(2):
        place = (("dp_rank", str(dp)), ("pp_rank", "0"), ("tp_rank", "0"))
        points.append((SeriesKey("sglang:num_running_reqs", place), 1.0))
        key = SeriesKey("sglang:prefill_effective_tokens_total", (*place[:1], ("mode", "input"), *place[1:]))
        points.append((key, computed))
    sample = samples.healthy()
    page = samples.with_points(sample.metrics[samples.SERVER], tuple(points))
    return replace(sample, metrics={samples.SERVER: page})


@pytest.mark.parametrize(
    ("computed", "with_storage", "expected"),
    [(100_000, (0,), ["breach"]), (100_000, (0, 1), []), (10_000, (0,), []), (100_000, (), [])],
)
def test_storage_on_some_groups_only(computed: float, with_storage: tuple[int, ...], expected: list[str]) -> None:
    assert severities(judge(two_groups(computed, with_storage)), "L3-ATTACH-SPLIT") == expected


def attached(*ranks: str) -> Sample:
    """Two DP groups of one rank; those named logged an attachment a minute ago."""
    sample = samples.healthy(60)
    assert sample.processes is not None
    processes = tuple(replace(samples.rank_process(dp), tag=RankTag(dp=dp)) for dp in range(2))
    text = "Attached HiCache storage backend: mooncake"
    events = tuple(
        Event(samples.START, "storage", text, samples.SERVER, rank, {"backend": "mooncake"}) for rank in ranks
    )
    servers = (ServerProcess(samples.SERVER, samples.MAIN_PID, 100),)
    return replace(sample, processes=Processes(servers, processes), events=events, metrics={})


def test_an_attachment_at_run_time_that_some_groups_missed() -> None:
    (finding,) = found(judge(attached("DP1")), "L3-ATTACH-SPLIT")
    assert finding.evidence["missing_groups"] == ["0"]
    assert severities(judge(attached("DP0", "DP1")), "L3-ATTACH-SPLIT") == []
    assert severities(judge(attached()), "L3-ATTACH-SPLIT") == []


def sharing(**second: Any) -> Sample:
    first = L3 | {"page_size": 64, "kv_cache_dtype": "fp8_e4m3"}
    infos = {
        server: ServerInfo(server, version="0.5.18", is_ready=True, args=args)
        for server, args in (("a:1", first), ("b:2", first | second))
    }
    return replace(samples.healthy(), infos=infos, processes=None, metrics={}, sources=())


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ({"page_size": 128}, ["breach"]),
        ({"tp_size": 4}, ["breach"]),
        ({}, []),
        ({"page_size": 128, "hicache_storage_backend_extra_config": '{"prefix": "b"}'}, []),
        ({"page_size": 128, "model_path": "another/model"}, []),
        ({"page_size": 128, "hicache_storage_backend": None}, []),
    ],
)
def test_two_servers_on_one_storage(second: dict[str, Any], expected: list[str]) -> None:
    assert severities(judge(sharing(**second)), "L3-SHARED-MISMATCH") == expected


GB = 10**9


def stored(free_gb: float, second: float = 0.0, **disk: Any) -> Sample:
    told = {"file_system": "xfs", "total_bytes": 1000 * GB, "total_inodes": 1000, "free_inodes": 500} | disk
    storage_disk = StorageDisk(samples.SERVER, "/mnt/kv", free_bytes=int(free_gb * GB), **told)
    return replace(samples.healthy(second), storage_disks={samples.SERVER: storage_disk})


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        pytest.param(stored(90), ["warn"], id="nine percent left"),
        pytest.param(stored(20), ["critical"], id="two percent left"),
        pytest.param(stored(110), [], id="eleven percent left"),
        pytest.param(stored(500, free_inodes=20), ["critical"], id="inodes run out first"),
        pytest.param(stored(500, total_inodes=0, free_inodes=0), [], id="no limit of inodes"),
        pytest.param(stored(500, file_system="tmpfs"), ["warn"], id="memory and no disk"),
        pytest.param(stored(500, file_system="overlay"), ["warn"], id="ends with the container"),
        pytest.param(samples.healthy(), [], id="no disk read"),
    ],
)
def test_the_disk_under_file_storage(sample: Sample, expected: list[str]) -> None:
    assert severities(judge(sample), "L3-DISK") == expected


def test_when_the_disk_is_full() -> None:
    (finding,) = found(judge(*(stored(90 - n, 10.0 * n) for n in range(7))), "L3-DISK")
    assert finding.evidence["seconds_until_full"] == pytest.approx(840)
    (still,) = found(judge(*(stored(90, 10.0 * n) for n in range(7))), "L3-DISK")
    assert "seconds_until_full" not in still.evidence
