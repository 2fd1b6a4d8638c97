"""Each rule: one input that fires, one that nearly does, one that lacks what the rule needs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ranktop.reconcile import Reconciler, Verdict
from ranktop.reconcile.history import Track
from ranktop.reconcile.rules.headroom import time_to_limit_seconds
from ranktop.sample import Event, Host, Processes, Sample, ServerInfo
from support import samples

PRIMARY = 120_000_012_288
INDEXER = 24_147_002_880


def judge(*story: Sample) -> Verdict:
    reconciler = Reconciler()
    return [reconciler.update(sample) for sample in story][-1]


def found(verdict: Verdict, code: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(finding.severity, finding.ranks) for finding in verdict.findings if finding.code == code]


def test_a_healthy_node_has_no_findings() -> None:
    verdict = judge(samples.healthy(0), samples.healthy(1))
    assert verdict.findings == ()
    assert verdict.headline.startswith("within plan since ")


def loading(sample: Sample) -> Sample:
    info = replace(sample.infos[samples.SERVER], is_ready=False)
    return replace(sample, infos={samples.SERVER: info})


def refused(sample: Sample, last_page_seconds: float, code: str = "refused") -> Sample:
    failing = samples.with_source(sample, "metrics", "error", code)
    at = sample.at_unix_seconds - last_page_seconds
    sources = tuple(
        replace(state, at_unix_seconds=at, period_seconds=5.0) if state.name == "metrics" else state
        for state in failing.sources
    )
    return replace(failing, sources=sources)


def sigterm(at_unix_seconds: float) -> Event:
    return Event(at_unix_seconds, "signal", "SIGTERM received", samples.SERVER, fields={"signal": "SIGTERM"})


def unreadable_maps(sample: Sample) -> Sample:
    return replace(sample, mappings={})


@pytest.mark.parametrize(
    ("code", "change", "expected"),
    [
        pytest.param(
            "HOST-POOL-OVER",
            lambda s: samples.with_pool(s, 3, PRIMARY * 11 // 10, INDEXER),
            [("breach", ("TP3",))],
            id="a tenth more than planned",
        ),
        pytest.param(
            "HOST-POOL-OVER",
            lambda s: samples.with_pool(s, 3, PRIMARY + 600_000_000 - 5000, INDEXER),
            [],
            id="just within half a percent",
        ),
        pytest.param("HOST-POOL-OVER", unreadable_maps, [], id="maps not readable"),
        pytest.param(
            "HOST-POOL-UNDER",
            lambda s: samples.with_pool(s, 0, PRIMARY * 9 // 10, INDEXER),
            [("breach", ("TP0",))],
            id="a tenth less than planned",
        ),
        pytest.param(
            "HOST-POOL-MISSING",
            lambda s: samples.with_pool(s, 2, PRIMARY),
            [("breach", ("TP2",))],
            id="ready and no indexer pool",
        ),
        pytest.param(
            "HOST-POOL-MISSING", lambda s: loading(samples.with_pool(s, 2, PRIMARY)), [], id="not ready: may yet come"
        ),
        pytest.param("HOST-POOL-MISSING", unreadable_maps, [], id="maps not readable"),
        pytest.param(
            "HOST-POOL-MISSING",
            lambda s: replace(samples.with_pool(s, 2, PRIMARY), events=(sigterm(s.at_unix_seconds - 1.0),)),
            [],
            id="given back after SIGTERM",
        ),
        pytest.param(
            "METRICS-OFF",
            lambda s: samples.with_source(s, "metrics", "error", "http_404"),
            [("warn", ())],
            id="404",
        ),
        pytest.param(
            "METRICS-OFF",
            lambda s: refused(s, last_page_seconds=12.0),
            [("warn", ())],
            id="refused after it had answered",
        ),
        pytest.param("METRICS-OFF", lambda s: refused(s, last_page_seconds=4.0), [], id="one page missed"),
        pytest.param(
            "METRICS-OFF",
            lambda s: replace(refused(s, last_page_seconds=12.0), events=(sigterm(s.at_unix_seconds - 11.0),)),
            [],
            id="refused after SIGTERM",
        ),
        pytest.param("METRICS-OFF", lambda s: replace(s, sources=()), [], id="no source state"),
        pytest.param(
            "METRICS-AUTH", lambda s: samples.with_source(s, "metrics", "error", "http_401"), [("warn", ())], id="401"
        ),
        pytest.param(
            "METRICS-REDIRECT",
            lambda s: samples.with_source(s, "metrics", "error", "http_3xx"),
            [("warn", ())],
            id="307",
        ),
        pytest.param(
            "METRICS-EMPTY", lambda s: refused(s, last_page_seconds=12.0, code="empty"), [("warn", ())], id="empty"
        ),
        pytest.param(
            "METRICS-EMPTY",
            lambda s: refused(s, last_page_seconds=12.0, code="truncated"),
            [("warn", ())],
            id="cut short for longer than a page",
        ),
        pytest.param(
            "METRICS-EMPTY", lambda s: refused(s, last_page_seconds=4.0, code="truncated"), [], id="one page cut short"
        ),
        pytest.param(
            "METRICS-EMPTY",
            lambda s: replace(refused(s, 12.0, code="empty"), events=(sigterm(s.at_unix_seconds - 11.0),)),
            [],
            id="empty after SIGTERM",
        ),
        pytest.param(
            "METRICS-TIMEOUT",
            lambda s: samples.with_source(s, "metrics", "error", "timeout"),
            [("warn", ())],
            id="timeout",
        ),
        pytest.param(
            "METRICS-RANK0-ONLY",
            lambda s: replace(s, metrics={samples.SERVER: samples.page(s.at_unix_seconds, stats_ranks=1)}),
            [("info", ())],
            id="one stats rank of eight",
        ),
        pytest.param("METRICS-RANK0-ONLY", lambda s: replace(s, metrics={}), [], id="no page"),
        pytest.param("RANK-DEAD", lambda s: samples.without_rank(s, 5), [("critical", ("TP5",))], id="a rank lacks"),
        pytest.param(
            "RANK-DEAD", lambda s: loading(samples.without_rank(s, 5)), [], id="not ready: it may not be titled yet"
        ),
        pytest.param("RANK-DEAD", lambda s: replace(s, processes=None), [], id="processes not readable"),
    ],
)
def test_rule(code: str, change: Callable[[Sample], Sample], expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert found(judge(change(samples.healthy())), code) == expected


def test_a_rank_that_was_seen_and_is_gone_is_dead() -> None:
    verdict = judge(samples.healthy(0), samples.without_rank(samples.healthy(1), 5))
    (dead,) = [finding for finding in verdict.findings if finding.code == "RANK-DEAD"]
    assert (dead.severity, dead.ranks, dead.evidence["pid"]) == ("critical", ("TP5",), samples.pid_of(5))
    assert verdict.headline.startswith("TP5: pid 4247 is gone")


def test_ranks_that_go_with_their_server_are_no_alarm() -> None:
    after = replace(samples.healthy(1), processes=Processes(), metrics={}, infos={}, sources=())
    verdict = judge(samples.healthy(0), after)
    assert found(verdict, "RANK-DEAD") == [("info", tuple(f"TP{tp}" for tp in range(8)))]


def test_a_zombie_is_dead() -> None:
    sample = samples.healthy()
    assert sample.processes is not None
    first, *others = sample.processes.ranks
    zombie = replace(sample, processes=replace(sample.processes, ranks=(replace(first, state="Z"), *others)))
    assert found(judge(zombie), "RANK-DEAD") == [("critical", ("TP0",))]


def test_a_refused_port_of_a_server_that_never_answered_is_ordinary() -> None:
    sample = replace(samples.healthy(), metrics={}, infos={})
    assert found(judge(samples.with_source(sample, "metrics", "error", "refused")), "METRICS-OFF") == []


def test_pools_to_come_need_room() -> None:
    """Eight ranks lack 24 GB each; 100 GB are left."""
    sample = samples.healthy()
    for tp in range(8):
        sample = samples.with_pool(sample, tp, PRIMARY)
    tight = replace(sample, host=Host(total_bytes=1511 * 10**9, available_bytes=100 * 10**9))
    assert found(judge(loading(tight)), "HOST-HEADROOM") == [("breach", ())]
    roomy = replace(sample, host=Host(total_bytes=1511 * 10**9, available_bytes=INDEXER * 8 + 11 * 10**9))
    assert found(judge(loading(roomy)), "HOST-HEADROOM") == []
    assert found(judge(loading(replace(sample, host=None))), "HOST-HEADROOM") == []


def falling(gb_per_second: float, left_gb: float) -> list[Sample]:
    host = Host(total_bytes=1511 * 10**9)
    return [
        replace(
            samples.healthy(second),
            host=replace(host, available_bytes=int((left_gb + gb_per_second * (20 - second)) * 1e9)),
        )
        for second in range(21)
    ]


def test_a_fall_that_ends_within_minutes_is_critical() -> None:
    assert found(judge(*falling(0.5, 60)), "HOST-HEADROOM") == [("critical", ())]
    assert found(judge(*falling(0.1, 60)), "HOST-HEADROOM") == [], "ten minutes are left"
    assert found(judge(*falling(5.0, 500)), "HOST-HEADROOM") == [], "a third of the host is left"


def test_time_to_limit_needs_a_fall_and_some_points() -> None:
    def track(*values: float) -> Track:
        return Track(tuple(float(at) for at in range(len(values))), values)

    assert time_to_limit_seconds(track(100, 90)) is None
    assert time_to_limit_seconds(track(*range(100, 110))) is None
    assert time_to_limit_seconds(track(100, 90, 80, 70, 60, 50)) == pytest.approx(5.0)
    assert time_to_limit_seconds(Track((1.0,) * 6, (100.0,) * 6)) is None


def test_an_unknown_version_softens_pool_breaches() -> None:
    info = ServerInfo(samples.SERVER, version="0.9.9", is_ready=True)
    sample = replace(samples.with_pool(samples.healthy(), 3, PRIMARY * 12 // 10, INDEXER), infos={samples.SERVER: info})
    severities = {finding.severity for finding in judge(sample).findings if finding.code.startswith("HOST-POOL")}
    assert severities == {"warn"}
