"""Work at the door and nothing moves: hung, stuck between prefill and decode, or only the gauges are old."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from ranktop.sample import Connections, Event, Gpus, LoadSnapshot, Sample, SeriesKey, ServerInfo
from support import samples
from tests.reconcile.tier_story import at, found, judge, severities, with_page

DOOR = SeriesKey("sglang:http_requests_active", (("endpoint", "/v1/chat/completions"), ("method", "POST")))
PASSES = SeriesKey("sglang:realtime_tokens_total", (("mode", "decode"), ("tp_rank", "0")))


def moment(
    seconds: float,
    *,
    passes: float = 5000,
    door: float | None = 4,
    gpu_percent: float | None = 0.0,
    role: str | None = None,
    version: str = "0.5.18",
) -> Sample:
    """One look at a server with this many requests at the door, decoded tokens and GPU use."""
    sample = at(seconds, {})
    points = [(PASSES, passes)] + ([(DOOR, door)] if door is not None else [])
    sample = with_page(sample, *points)
    assert sample.gpus is not None
    gpus = tuple(replace(gpu, utilization_percent=gpu_percent) for gpu in sample.gpus.gpus)
    args = {"model_path": "zai-org/GLM-5.2-FP8", "tp_size": 8, "disaggregation_mode": role} if role else {}
    info = ServerInfo(samples.SERVER, version=version, is_ready=True, args=args)
    return replace(sample, gpus=Gpus(gpus=gpus), infos={samples.SERVER: info})


def still(seconds: float, **same: Any) -> list[Sample]:
    return [moment(5.0 * n, **same) for n in range(int(seconds / 5) + 1)]


def changed(told: list[Sample], change: Callable[[int, Sample], Sample]) -> list[Sample]:
    return [change(number, sample) for number, sample in enumerate(told)]


def log_line(number: int, sample: Sample) -> Sample:
    event = Event(sample.at_unix_seconds, "decode_batch", "Decode batch", samples.SERVER, "TP0")
    return replace(sample, events=(event,)) if number % 3 == 0 else sample


def stale_page(number: int, sample: Sample) -> Sample:
    return samples.with_source(sample, "metrics", "error", "refused") if number else sample


def silent(clients: int | None) -> Callable[[int, Sample], Sample]:
    """After the first page nothing answers any more."""

    def change(number: int, sample: Sample) -> Sample:
        if number == 0:
            return sample
        told = Connections(samples.SERVER, {30000: clients} if clients is not None else {})
        connections = {samples.SERVER: told} if clients is not None else {}
        first = at(0, {}).metrics
        lost = replace(sample, connections=connections, metrics=first)
        return samples.with_source(lost, "metrics", "error", "timeout")

    return change


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param(still(60), ["critical"], id="a minute of nothing"),
        pytest.param(still(55), [], id="not a minute yet"),
        pytest.param(still(90, door=0), [], id="nobody waits"),
        pytest.param(still(90, door=None), [], id="the door is not counted"),
        pytest.param(still(90, gpu_percent=80.0), [], id="a long prefill uses the GPU"),
        pytest.param(still(90, gpu_percent=None), [], id="GPU use is not known"),
        pytest.param(still(90, passes=0), [], id="no batch ever ran: it may compile"),
        pytest.param([moment(5.0 * n, passes=100 * n) for n in range(19)], [], id="batches run"),
        pytest.param(changed(still(90), log_line), [], id="the log goes on"),
        pytest.param(changed(still(90), stale_page), [], id="the page is old, so nobody knows"),
        pytest.param([moment(0), moment(70), moment(80)], [], id="fewer than three pages"),
        pytest.param(changed(still(70), silent(clients=3)), ["critical"], id="HTTP is silent, clients are connected"),
        pytest.param(changed(still(70), silent(clients=0)), [], id="HTTP is silent, nobody is connected"),
        pytest.param(changed(still(70), silent(clients=None)), [], id="HTTP is silent, connections unread"),
    ],
)
def test_server_hung(told: list[Sample], expected: list[str]) -> None:
    assert severities(judge(*told), "SERVER-HUNG") == expected


def test_a_hang_is_measured_from_the_last_sign_of_life() -> None:
    told = [
        *(moment(5.0 * n, passes=100 * n) for n in range(5)),
        *(moment(20 + 5.0 * n, passes=400) for n in range(1, 14)),
    ]
    (finding,) = found(judge(*told), "SERVER-HUNG")
    assert finding.evidence["idle_seconds"] == 65
    assert finding.evidence["door_requests"] == 4


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param(still(15, role="prefill"), ["critical"], id="fifteen seconds without a batch"),
        pytest.param(still(10, role="prefill"), [], id="ten seconds"),
        pytest.param(still(60), [], id="no prefill or decode role"),
        pytest.param(still(60, role="prefill", door=0), [], id="nobody waits"),
        pytest.param(still(60, role="prefill", gpu_percent=90.0), [], id="a long chunk"),
        pytest.param([moment(5.0 * n, role="decode", passes=9 * n) for n in range(1, 9)], [], id="batches run"),
        pytest.param(still(60, role="prefill", passes=0), [], id="before the first batch: it may compile"),
    ],
)
def test_pd_stuck(told: list[Sample], expected: list[str]) -> None:
    assert severities(judge(*told), "PD-STUCK") == expected


def test_a_queue_that_waits_for_the_other_side_is_stuck_before_the_first_batch() -> None:
    loads = {samples.SERVER: (LoadSnapshot(samples.SERVER, 0, bootstrap_queue_requests=6),)}
    told = [replace(one, loads=loads) for one in still(30, role="prefill", passes=0)]
    assert severities(judge(*told), "PD-STUCK") == ["critical"]


def test_stuck_counts_down_to_the_time_out_and_names_the_queue() -> None:
    loads = {samples.SERVER: (LoadSnapshot(samples.SERVER, 0, bootstrap_queue_requests=6),)}
    (finding,) = found(judge(*(replace(one, loads=loads) for one in still(30, role="prefill"))), "PD-STUCK")
    assert finding.evidence["seconds_left"] == 270
    assert finding.evidence["bootstrap_queue_requests"] == 6
    assert "6 bootstrap queue requests" in finding.message


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param(still(30), ["warn"], id="half a minute"),
        pytest.param(still(25), [], id="not yet"),
        pytest.param(still(90, door=0), [], id="nobody waits"),
        pytest.param([moment(5.0 * n, passes=9 * n) for n in range(1, 9)], [], id="a counter moves"),
        pytest.param(still(90, passes=0), [], id="before the first batch"),
        pytest.param(still(90, door=None), [], id="the door is not counted"),
    ],
)
def test_metrics_stale(told: list[Sample], expected: list[str]) -> None:
    assert severities(judge(*told), "METRICS-STALE") == expected


def test_stale_gauges_of_a_stuck_server_name_their_cause() -> None:
    (finding,) = found(judge(*still(30, role="prefill")), "METRICS-STALE")
    assert finding.causes == ("PD-STUCK",)
    assert "/v1/loads" in finding.message
    (newer,) = found(judge(*still(30, version="0.5.23")), "METRICS-STALE")
    assert (newer.causes, "/v1/loads" in newer.message) == ((), False)


def counted(sample: Sample, **labels: str) -> Sample:
    return with_page(sample, (SeriesKey("sglang:evicted_tokens_total", tuple(labels.items())), 4096.0))


HICACHE = {"model_path": "zai-org/GLM-5.2-FP8", "enable_hierarchical_cache": True, "hicache_size": 120}


@pytest.mark.parametrize(
    ("version", "args", "expected"),
    [
        ("0.5.18", {"tp_size": 8}, ["info"]),
        ("0.5.23", {"tp_size": 8}, []),
        ("0.5.23", {"tp_size": 4, "dp_size": 2}, ["info"]),
        ("0.5.18", {"tp_size": 8, "enable_hierarchical_cache": False}, []),
    ],
)
def test_metrics_dedup(version: str, args: dict[str, Any], expected: list[str]) -> None:
    info = ServerInfo(samples.SERVER, version=version, is_ready=True, args=HICACHE | args)
    sample = replace(samples.healthy(), infos={samples.SERVER: info})
    assert severities(judge(counted(sample)), "METRICS-DEDUP") == expected
    assert severities(judge(sample), "METRICS-DEDUP") == [], "nothing has been merged yet"
