"""SPEC-COLLAPSE: by request records, and against the server's own baseline at the same load."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ranktop.reconcile.requests import acceptance, repeats_share
from ranktop.sample import RequestRecord, Sample, SeriesKey, ServerProcess
from support import samples
from tests.reconcile.tier_story import RANKS, at, found, judge, severities, with_page


def decoding(seconds: float, length: float | None, running: int = 3, steps_per_second: float = 10.0) -> Sample:
    """Every rank reports this acceptance length; None where it reports none."""
    sample = at(seconds, {"verified": steps_per_second * seconds})
    page = sample.metrics[samples.SERVER]
    points = tuple(
        (key, float(running)) if key.name == "sglang:num_running_reqs" else (key, value) for key, value in page.points
    )
    sample = replace(sample, metrics={samples.SERVER: samples.with_points(page, points)})
    if length is None:
        return sample
    places = [(("engine_type", "unified"), ("pp_rank", "0"), ("tp_rank", str(tp))) for tp in range(RANKS)]
    return with_page(sample, *((SeriesKey("sglang:spec_accept_length", place), length) for place in places))


def falling(after: float, **second: float) -> list[Sample]:
    """Two minutes at 2.8, then a minute and a half at `after`."""
    return [
        *(decoding(10.0 * n, 2.8) for n in range(12)),
        *(decoding(120 + 10.0 * n, after, **second) for n in range(10)),  # type: ignore[arg-type]
    ]


def test_half_of_its_own_baseline() -> None:
    (finding,) = found(judge(*falling(1.4)), "SPEC-COLLAPSE")
    assert (finding.severity, finding.server) == ("breach", samples.SERVER)
    assert finding.evidence["accept_length"] == pytest.approx(1.4)
    assert finding.evidence["baseline_accept_length"] == pytest.approx(2.8)


def test_the_load_is_the_servers_own() -> None:
    """A neighbour that becomes busy meanwhile explains nothing."""
    told: list[Sample] = []
    for place, sample in enumerate(falling(1.4)):
        busy = decoding(10.0 * place, None, running=3 if place < 12 else 300)
        assert sample.processes is not None
        servers = (*sample.processes.servers, ServerProcess("127.0.0.1:30001", 9_000, 7, state="S"))
        told.append(
            replace(
                sample,
                processes=replace(sample.processes, servers=servers),
                metrics={**sample.metrics, "127.0.0.1:30001": busy.metrics[samples.SERVER]},
            )
        )
    verdict = judge(*told)
    assert {server.id: server.service.running for server in verdict.servers}["127.0.0.1:30001"] == 300
    assert [finding.server for finding in found(verdict, "SPEC-COLLAPSE")] == [samples.SERVER]


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(falling(2.0), id="71 percent is no collapse"),
        pytest.param(falling(1.4, running=30), id="another load has no baseline"),
        pytest.param(falling(1.4, steps_per_second=0.1), id="hardly a verify step"),
        pytest.param([decoding(10.0 * n, 1.4) for n in range(30)], id="it never was better"),
        pytest.param([decoding(10.0 * n, None) for n in range(30)], id="no speculation"),
    ],
)
def test_no_collapse(told: list[Sample]) -> None:
    assert severities(judge(*told), "SPEC-COLLAPSE") == []


def record(restored: bool, length: float | None, steps: int = 100) -> RequestRecord:
    host = 4096 if restored else 0
    return RequestRecord(
        "l2" if restored else "cold",
        prompt_tokens=8192,
        cached_tokens=host,
        host_tokens=host,
        accept_length=length,
        verify_steps=steps,
    )


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param([record(True, 1.67)] * 3 + [record(False, 5.9)] * 3, ["breach"], id="28 percent after a restore"),
        pytest.param([record(True, 4.2)] * 3 + [record(False, 5.9)] * 3, [], id="71 percent"),
        pytest.param([record(True, 1.67)] + [record(False, 5.9)] * 3, [], id="a hundred steps only"),
        pytest.param([record(True, None)] * 3 + [record(False, 5.9)] * 3, [], id="no length recorded"),
        pytest.param([], [], id="no records"),
    ],
)
def test_after_restores_against_without(records: list[RequestRecord], expected: list[str]) -> None:
    sample = replace(samples.healthy(), requests={samples.SERVER: tuple(records)})
    assert severities(judge(sample), "SPEC-COLLAPSE") == expected


def test_a_read_that_stays_in_the_samples_counts_once() -> None:
    """Two requests of 100 steps, seen in three samples, are 200 steps a kind and not 600."""
    records = (record(True, 1.0, 90), record(False, 5.0, 300))
    told = [replace(samples.healthy(second), requests={samples.SERVER: records}) for second in range(3)]
    assert severities(judge(*told), "SPEC-COLLAPSE") == []


def test_acceptance_is_weighted_by_steps() -> None:
    told = acceptance([record(True, 2.0, 100), record(True, 4.0, 300), record(False, 9.0)], restored=True)
    assert told is not None
    assert (told.length, told.verify_steps) == (3.5, 400)
    assert acceptance([RequestRecord("l1", accept_length=2.0, verify_steps=5)], restored=True) is None
    assert repeats_share([record(True, None), record(False, None)]) == 0.25
    assert repeats_share([]) is None
