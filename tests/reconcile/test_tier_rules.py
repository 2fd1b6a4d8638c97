"""Rules on L2: each fires, nearly fires, and stays silent where a counter is missing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from ranktop.reconcile.launches import Launch
from ranktop.reconcile.reconciler import Reconciler
from ranktop.sample import Event, RequestRecord, Sample, SeriesKey
from support import samples
from tests.reconcile.tier_story import at, found, judge, page_of, severities, story, with_info, with_page

READ = {"input": 500, "device": 50, "host": 40, "loaded": 40, "evicted": 300, "written": 300}
UNREAD = {"input": 500, "device": 0, "host": 0, "loaded": 0, "evicted": 300, "written": 300}


@pytest.mark.parametrize(
    ("code", "seconds", "per_second", "expected"),
    [
        pytest.param("L2-NEVER-READ", 600, UNREAD, ["warn"], id="ten minutes written and evicted"),
        pytest.param("L2-NEVER-READ", 600, UNREAD | {"device": 100}, ["breach"], id="and repeats are proven"),
        pytest.param("L2-NEVER-READ", 570, UNREAD, [], id="not ten minutes yet"),
        pytest.param("L2-NEVER-READ", 600, UNREAD | {"loaded": 0.2}, [], id="a little was read"),
        pytest.param("L2-NEVER-READ", 600, UNREAD | {"evicted": 0}, [], id="nothing evicted"),
        pytest.param("L2-NEVER-READ", 600, {"input": 500}, [], id="no L2 counters before their first event"),
        pytest.param("L2-PHANTOM-HIT", 90, READ | {"host": 100}, ["warn"], id="hits twice what came back"),
        pytest.param("L2-PHANTOM-HIT", 30, READ | {"host": 100}, [], id="not a minute yet"),
        pytest.param("L2-PHANTOM-HIT", 600, READ | {"host": 42}, [], id="within five percent"),
        pytest.param("L2-PHANTOM-HIT", 90, {"loaded": 40, "evicted": 300}, [], id="hits are not counted"),
        pytest.param("L2-PROVEN", 60, READ, ["info"], id="loaded back with host hits"),
        pytest.param("L2-PROVEN", 30, READ, [], id="half a minute"),
        pytest.param("L2-PROVEN", 60, READ | {"storage": 1}, [], id="a storage hit may explain it"),
        pytest.param("L2-PROVEN", 60, READ | {"host": 0}, [], id="no host hit"),
        pytest.param("L2-DROPPED", 60, READ | {"dropped": 30}, ["warn"], id="a tenth dropped"),
        pytest.param("L2-DROPPED", 60, READ | {"dropped": 2}, [], id="under a hundredth"),
        pytest.param("L2-DROPPED", 60, READ, [], id="no drop counter"),
        pytest.param("TIER-INCONSISTENT", 90, READ | {"loaded": 200}, ["breach"], id="more came back than was hit"),
        pytest.param("TIER-INCONSISTENT", 600, READ | {"loaded": 41}, [], id="within five percent"),
        pytest.param("TIER-INCONSISTENT", 90, {"loaded": 200, "evicted": 300}, [], id="hits are not counted"),
    ],
)
def test_rule(code: str, seconds: float, per_second: Mapping[str, float], expected: list[str]) -> None:
    assert severities(judge(*story(seconds, per_second)), code) == expected


def test_reads_and_writes_in_order_give_nothing_loud() -> None:
    loud = [finding for finding in judge(*story(900, READ)).findings if finding.severity != "info"]
    assert loud == []


def test_evidence_speaks_of_logical_tokens_and_of_the_window() -> None:
    (finding,) = found(judge(*story(600, UNREAD)), "L2-NEVER-READ")
    assert finding.evidence["written_tokens"] == 300 * 600
    assert finding.evidence["window_seconds"] == 600
    assert finding.sources["written_tokens"] == "reported"


def test_a_single_page_is_judged_as_it_stands_when_no_more_will_come() -> None:
    page = at(0, {"input": 9000, "evicted": 644_810, "written": 32_700, "loaded": 0, "host": 0})
    assert severities(judge(page), "L2-NEVER-READ") == []
    (finding,) = found(judge(page, since_start=True), "L2-NEVER-READ")
    assert finding.evidence["since_start"] is True
    assert "window_seconds" not in finding.evidence


def test_records_prove_repeats_that_no_gauge_shows() -> None:
    told = story(600, UNREAD)
    records = (RequestRecord("l1", prompt_tokens=1000, cached_tokens=900, device_tokens=900),)
    told = [replace(sample, requests={samples.SERVER: records}) for sample in told]
    assert severities(judge(*told), "L2-NEVER-READ") == ["breach"]


def test_hits_of_the_newest_page_may_still_be_on_their_way() -> None:
    """A long prompt is hit at scheduling; its load-back is acknowledged on the next page."""
    told = story(60, READ)
    late = at(65, {name: rate * 65 for name, rate in READ.items()} | {"host": 40 * 65 + 50_000})
    assert severities(judge(*told, late), "L2-PHANTOM-HIT") == []
    after = at(70, {name: rate * 70 for name, rate in READ.items()} | {"host": 40 * 70 + 50_000})
    assert severities(judge(*told, late, after), "L2-PHANTOM-HIT") == ["warn"]


def test_a_load_back_may_be_of_a_hit_before_the_window() -> None:
    start = dict.fromkeys(READ, 0.0) | {"host": 50_000.0}
    told = [at(0, start), at(5, start | {"loaded": 50_000.0}), at(60, start | {"loaded": 50_000.0})]
    assert severities(judge(*told), "TIER-INCONSISTENT") == []


def test_a_server_that_restarted_is_not_held_against_its_predecessor() -> None:
    old = story(600, {"requests": 2, "evicted": 0, "written": 0, "loaded": 0})
    new = at(605, {"requests": 1, "input": 9000, "evicted": 9000, "written": 9000, "loaded": 0})
    assert severities(judge(*old, new), "L2-NEVER-READ") == []


def test_a_retraction_explains_a_load_back_without_a_hit() -> None:
    key = SeriesKey("sglang:num_retracted_requests_total", (("tp_rank", "0"),))
    told = story(90, READ | {"loaded": 200})
    retracting = [with_page(sample, (key, 8.0 * number)) for number, sample in enumerate(told)]
    assert severities(judge(*retracting), "TIER-INCONSISTENT") == []


def test_hits_of_a_tier_that_the_launch_does_not_have() -> None:
    told = [
        with_info(sample, model_path="zai-org/GLM-5.2-FP8", tp_size=8, enable_hierarchical_cache=True, hicache_size=120)
        for sample in story(60, READ | {"storage": 40, "loaded": 80})
    ]
    (finding,) = found(judge(*told), "TIER-INCONSISTENT")
    assert finding.evidence["storage_hit_tokens"] == 40 * 60
    assert severities(judge(*story(60, READ | {"storage": 40, "loaded": 80})), "TIER-INCONSISTENT") == []


def test_a_race_is_told_from_a_lack_of_room() -> None:
    (race,) = found(judge(*story(60, READ | {"raced": 30})), "L2-DROPPED")
    (room,) = found(judge(*story(60, READ | {"dropped": 30})), "L2-DROPPED")
    assert "race" in race.advice
    assert "--hicache-size" in room.advice
    assert race.evidence["tokens_by_reason"] == {"write_through_unbacked_eviction": 30 * 60}


@pytest.mark.parametrize(
    ("used", "written", "loaded", "expected"),
    [
        (2_340_000, 4000, 20, ["warn"]),
        (2_340_000, 4000, 400, []),
        (2_340_000, 1000, 5, []),
        (1_000_000, 4000, 20, []),
    ],
)
def test_churn(used: int, written: float, loaded: float, expected: list[str]) -> None:
    told = story(600, {"input": 5000, "written": written, "loaded": loaded, "evicted": 4000, "host": loaded}, used=used)
    assert severities(judge(*told), "L2-CHURN") == expected


def gauge(sample: Sample, tokens: float) -> Sample:
    points = tuple(
        (key, tokens if key.name == "sglang:hicache_host_total_tokens" else value)
        for key, value in page_of(sample).points
    )
    return replace(sample, metrics={samples.SERVER: samples.with_points(page_of(sample), points)})


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [(2_345_216, []), (2_345_216 * 1.04, []), (2_345_216 * 1.25, ["breach"]), (32_960, ["breach"]), (0, [])],
)
def test_a_gauge_against_the_mapped_pool(tokens: float, expected: list[str]) -> None:
    assert severities(judge(gauge(samples.healthy(), tokens)), "L2-GAUGE-LIES") == expected


def test_a_plan_of_the_nearest_version_is_no_proof() -> None:
    assert severities(judge(with_info(gauge(samples.healthy(), 5), version="0.9.9")), "L2-GAUGE-LIES") == []


def test_a_gauge_without_a_pool_to_hold_it_against() -> None:
    assert severities(judge(replace(gauge(samples.healthy(), 5), mappings={})), "L2-GAUGE-LIES") == []


def test_which_copy_path_runs() -> None:
    events = tuple(
        Event(
            samples.START,
            "jit_fallback",
            "Unsupported element_size = 656 for JIT HiCache kernel",
            samples.SERVER,
            f"TP{tp}",
            {"row_bytes": 656},
        )
        for tp in range(8)
    )
    (finding,) = found(judge(replace(samples.healthy(), events=events)), "TIER-IO-FALLBACK")
    assert (finding.severity, finding.evidence) == ("info", {"row_bytes": 656, "ranks": 8})
    assert severities(judge(samples.healthy()), "TIER-IO-FALLBACK") == []


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param({"ttft_seconds": 2.0, "e2e_seconds": 8.0}, ["warn"], id="first token sooner, the whole later"),
        pytest.param({"ttft_seconds": 2.0, "e2e_seconds": 10.0}, [], id="both about as before or better"),
        pytest.param({"ttft_seconds": 1.0, "e2e_seconds": 8.0}, [], id="no gain in the first token"),
        pytest.param({"e2e_seconds": 8.0}, [], id="no baseline of the first token"),
        pytest.param({"ttft_seconds": 2.0, "e2e_seconds": 8.0, "requests": 10.0}, [], id="too few requests before"),
    ],
)
def test_a_better_first_token_alone(before: Mapping[str, float], expected: list[str]) -> None:
    base = Launch(samples.SERVER, samples.START - 90_000, args={"tp_size": 8}, **({"requests": 100.0} | dict(before)))  # type: ignore[arg-type]
    series = {"time_to_first_token_seconds": 1.0, "e2e_request_latency_seconds": 10.0}
    sample = at(0, {"requests": 100.0})
    for name, mean in series.items():
        sum_key, count_key = SeriesKey(f"sglang:{name}_sum"), SeriesKey(f"sglang:{name}_count")
        sample = with_page(sample, (sum_key, 100 * mean), (count_key, 100.0))
    verdict = Reconciler(launches=[base]).update(with_info(sample, tp_size=8))
    assert severities(verdict, "TIER-TTFT-ONLY") == expected


@pytest.mark.parametrize(
    ("code", "per_second", "told"),
    [
        ("L2-PROVEN", READ | {"host": 4_000, "loaded": 4_000}, "240,000 tokens"),
        ("L2-NEVER-READ", UNREAD, "180,000 tokens written to L2"),
    ],
)
def test_tokens_are_told_in_groups_of_three_digits(code: str, per_second: Mapping[str, float], told: str) -> None:
    verdict = judge(*story(600 if code == "L2-NEVER-READ" else 60, per_second))
    (finding,) = (each for each in verdict.findings if each.code == code)
    assert told in finding.message
