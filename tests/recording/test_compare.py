"""Gates: pass, fail and not shown, each for its reason; and what a sweep says of a further GB."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ranktop.reconcile import Reconciler
from ranktop.recording.compare.gates import Comparison, Limits, compare, limits_of
from ranktop.recording.compare.populations import quantiles
from ranktop.recording.compare.sweep import sweep
from ranktop.recording.compare.trial import Trial, trial_of
from ranktop.recording.marks import Mark
from ranktop.recording.reader import Recording
from ranktop.recording.writer import Writer
from ranktop.sample import Pressure, RequestRecord, Sample
from support.samples import SERVER, START, healthy, with_pool


def served(
    second: int, *, ttft: float = 1.0, e2e: float = 10.0, finish: str = "stop", name: str = "l2"
) -> RequestRecord:
    slower = 1 + (second % 10) / 100
    return RequestRecord(name, START + second, 8000, 7000, 0, 7000, 0, 200, ttft * slower, e2e * slower, finish=finish)


def trial(path: Path, seconds: int = 60, *, marks: dict[int, str] | None = None, **how: object) -> Trial:
    """A recording of a healthy node that serves one request a second, judged."""
    writer, reconciler = Writer(str(path), {}), Reconciler()
    for second in range(seconds):
        sample = _sample(second, **how)
        text = (marks or {}).get(second)
        writer.append(sample, reconciler.update(sample), [Mark(START + second, text)] if text else None)
    writer.close()
    with Recording(str(path)) as recording:
        return trial_of(recording, Reconciler())


def _sample(
    second: int,
    *,
    pressure: float = 0.0,
    pool: int | None = None,
    requests: bool = True,
    aborted: int = 0,
    **times: float,
) -> Sample:
    sample = healthy(float(second))
    assert sample.host is not None
    sample = replace(sample, host=replace(sample.host, pressure=Pressure(some_avg10_percent=pressure)))
    if pool is not None:
        sample = with_pool(sample, 3, pool, 24 * 10**9)
    if not requests:
        return sample
    finish = "abort" if aborted and second % aborted == 0 else "stop"
    return replace(sample, requests={SERVER: (served(second, finish=finish, **times),)})


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return trial(tmp_path_factory.mktemp("base") / "base.rtop")


def outcomes(result: Comparison) -> dict[str, str]:
    return {gate.gate: gate.outcome for gate in result.gates}


def judged(base: Trial, tmp_path: Path, **how: object) -> Comparison:
    return compare(base, trial(tmp_path / "candidate.rtop", **how), Limits())  # type: ignore[arg-type]


def test_each_request_counts_once_though_it_stands_in_several_samples(tmp_path: Path) -> None:
    path = tmp_path / "a.rtop"
    writer, reconciler = Writer(str(path), {}), Reconciler()
    for second in range(75):
        read = second - second % 5
        sample = replace(healthy(float(second)), requests={SERVER: (served(read), served(read, name="cold"))})
        writer.append(sample, reconciler.update(sample))
    writer.close()
    with Recording(str(path)) as recording:
        told = trial_of(recording, Reconciler()).requests
    assert told is not None
    assert told.requests == 2 * 15
    assert {name: found.requests for name, found in told.populations.items()} == {"cold": 15, "l2": 15}


def test_an_equal_candidate_passes_all_that_is_shown(base: Trial, tmp_path: Path) -> None:
    result = judged(base, tmp_path)
    assert "fail" not in outcomes(result).values()
    assert outcomes(result)["e2e p95 l2"] == "pass"
    assert outcomes(result)["pools within plan"] == "pass"


def test_a_better_first_token_and_a_slower_request_fails(base: Trial, tmp_path: Path) -> None:
    result = judged(base, tmp_path, ttft=0.2, e2e=15.0)
    assert outcomes(result)["ttft p50 l2"] == "pass"
    assert outcomes(result)["e2e p50 l2"] == "fail"
    assert result.outcome == "fail"


@pytest.mark.parametrize(
    ("how", "gate"),
    [
        ({"pressure": 4.0}, "host pressure back at baseline"),
        ({"pool": 130 * 10**9}, "pools within plan"),
        ({"aborted": 10}, "failed requests"),
    ],
)
def test_one_bad_thing_fails_one_gate(base: Trial, tmp_path: Path, how: dict[str, object], gate: str) -> None:
    result = judged(base, tmp_path, **how)
    assert outcomes(result)[gate] == "fail"
    assert gate in result.reason
    failed = [name for name, outcome in outcomes(result).items() if outcome == "fail"]
    assert gate in failed


def test_without_request_records_nothing_passes(base: Trial, tmp_path: Path) -> None:
    result = judged(base, tmp_path, requests=False)
    assert result.outcome != "pass"
    assert outcomes(result)["latency by population"] == "not shown"
    assert any("--export-metrics-to-file" in note for note in result.notes)


def test_populations_are_never_mixed(base: Trial, tmp_path: Path) -> None:
    result = judged(base, tmp_path, name="cold", e2e=1.0)
    assert outcomes(result)["e2e p50 l2"] == "not shown"
    assert outcomes(result)["e2e p50 cold"] == "not shown"
    assert result.outcome != "pass"


def test_warm_ups_are_left_out_and_told(base: Trial, tmp_path: Path) -> None:
    marks = {0: "warm-up", 15: "trial 1", 35: "trial 2"}
    told = trial(tmp_path / "a.rtop", marks=marks).requests
    assert told is not None
    assert (told.trials, told.warm_ups, told.excluded, told.requests) == (2, 1, 15, 45)


def test_a_recording_with_holes_proves_nothing(base: Trial) -> None:
    result = compare(base, replace(base, missing_samples=30), Limits())
    assert outcomes(result)["recording whole"] == "fail"


def test_limits_come_from_a_file_and_typos_are_told() -> None:
    assert limits_of("[gates]\ne2e_p50_ratio = 2.0").e2e_p50_ratio == 2.0
    for text in ("[gates]\ne2e_p50 = 2.0", "[gates", "[gates]\ne2e_p50_ratio = 'x'"):
        with pytest.raises(ValueError, match=r"."):
            limits_of(text)


def test_tails_need_requests_behind_them() -> None:
    assert quantiles([]).p50 is None
    assert quantiles([3.0]).p50 == 3.0
    assert quantiles([1.0] * 19).p95 is None
    assert quantiles([1.0] * 20).p95 == 1.0
    assert quantiles([1.0] * 99).p99 is None
    assert quantiles([float(value) for value in range(101)]).p99 == pytest.approx(99.0)


def test_a_sweep_says_what_each_further_gb_bought(base: Trial) -> None:
    trials = [
        replace(base, name=f"{size}", pool_bytes=size * 10**9, host_hit=hit, tokens_per_second=rate)
        for size, hit, rate in ((960, 0.35, 900.0), (480, 0.20, 800.0))
    ]
    first, second = sweep(trials)
    assert (first.name, first.host_hit_per_gb) == ("480", None)
    assert second.host_hit_per_gb == pytest.approx(0.15 / 480)
    assert second.tokens_per_second_per_gb == pytest.approx(100 / 480)
    assert set(second.e2e_p50_seconds) == {"l2"}
