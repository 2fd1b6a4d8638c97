"""Between prefill and decode: failures by room and phase, transports, ranks that decode cannot reach."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from collectors.serverlog_lines import match_message
from ranktop.sample import (
    Bootstrap,
    BootstrapRank,
    Event,
    Processes,
    RankTag,
    Sample,
    SeriesKey,
    ServerInfo,
    ServerProcess,
)
from support import samples
from tests.reconcile.test_layersplit_rules import SPLIT, tag
from tests.reconcile.tier_story import found, judge, severities

PREFILL = {name: value for name, value in SPLIT.items() if "split" not in name}


def event(message: str, rank: str | None = None, second: float = 0.0) -> Event:
    told = match_message(message)
    assert told is not None, message
    return Event(samples.START + second, told[0], message, samples.SERVER, rank, told[1])


def server(seconds: float = 0.0, *events: Event, args: dict[str, Any] | None = None, **changes: Any) -> Sample:
    """A ready prefill server of four ranks."""
    sample = samples.healthy(seconds)
    info = ServerInfo(samples.SERVER, version="0.5.18", is_ready=True, args=args or PREFILL)
    ranks = tuple(replace(samples.rank_process(cp), tag=RankTag(cp=cp, tp=cp)) for cp in range(4))
    processes = Processes((ServerProcess(samples.SERVER, samples.MAIN_PID, 100),), ranks)
    return replace(sample, processes=processes, infos={samples.SERVER: info}, events=events, **changes)


def counting(seconds: float, name: str, *by_rank: float, args: dict[str, Any] | None = None) -> Sample:
    """One counter, of each of the first ranks."""
    sample = server(seconds, args=args)
    page = samples.page(sample.at_unix_seconds)
    places = [(("engine_type", "prefill"), ("pp_rank", "0"), ("tp_rank", str(tp))) for tp in range(4)]
    keys = [SeriesKey(f"sglang:{name}", place) for place in places]
    points = (*page.points, *zip(keys, by_rank, strict=False))
    return replace(sample, metrics={samples.SERVER: samples.with_points(page, points)})


def failed(room: int, rank: int, reason: str, second: float = 0.0) -> Event:
    return event(
        f"Prefill transfer failed for request rank={rank} req.rid='3ce8' req.bootstrap_room={room} with exception "
        f"KVTransferError(bootstrap_room={room}): {reason}",
        tag(rank),
        second,
    )


def test_failures_that_rise() -> None:
    told = [counting(20.0 * n, "num_transfer_failed_reqs_total", *[2.0 * n] * 4) for n in range(5)]
    (finding,) = found(judge(*told), "PD-FAILURES")
    assert (finding.severity, finding.evidence["requests_by_phase"]) == ("breach", {"transferring": 6.0})
    old = [counting(20.0 * n, "num_transfer_failed_reqs_total", *[40.0] * 4) for n in range(5)]
    assert severities(judge(*old), "PD-FAILURES") == [], "failures of long ago"
    assert severities(judge(*(server(20.0 * n) for n in range(5))), "PD-FAILURES") == [], "no counter, no log"


def test_the_first_rank_with_a_reason_of_its_own() -> None:
    events = (
        failed(7, 1, "Failed due to an unknown reason from another rank"),
        failed(7, 2, "local protection error", 0.1),
        failed(8, 3, "Failed due to an unknown reason from another rank", 0.2),
    )
    (finding,) = found(judge(server(1, *events)), "PD-FAILURES")
    assert finding.evidence["rooms"] == 2
    assert (finding.evidence["first_rank"], finding.evidence["first_reason"]) == (tag(2), "local protection error")
    assert finding.ranks == (tag(2),)


def test_a_bootstrap_that_timed_out_is_told_by_its_phase() -> None:
    room = 5975098084415727586
    message = (
        f"Prefill bootstrap failed for request rank=2 req.rid='d3fd' req.bootstrap_room={room} with exception "
        f"KVTransferError(bootstrap_room={room}): Request {room} timed out after 300.0s in KVPoll.Bootstrapping"
    )
    (finding,) = found(judge(server(1, event(message, tag(2)))), "PD-FAILURES")
    assert finding.evidence["requests_by_phase"] == {"bootstrapping": 1.0}


def test_failures_of_the_log_are_forgotten() -> None:
    assert severities(judge(server(0, failed(7, 1, "x")), *(server(70.0 + n) for n in range(4))), "PD-FAILURES") == []


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param((failed(7, 1, "x"), failed(7, 1, "x", 9)), ["warn"], id="the same room again"),
        pytest.param((failed(7, 1, "x"), failed(7, 2, "x", 9)), [], id="two ranks of one room"),
        pytest.param((failed(7, 1, "x"), failed(8, 1, "x", 9)), [], id="two rooms"),
        pytest.param((), [], id="no failure"),
    ],
)
def test_a_room_that_comes_back(events: tuple[Event, ...], expected: list[str]) -> None:
    assert severities(judge(server(10, *events)), "PD-DUPLICATE") == expected


def registered(count: int, expected: int | None = 4, missing: int | None = None, ready: bool = True) -> Bootstrap:
    ranks = tuple(BootstrapRank(0, cp, 0, 0, cp != missing) for cp in range(4)) if ready else ()
    return Bootstrap(samples.SERVER, ready, count, expected, ranks=ranks)


def asked(bootstrap: Bootstrap | None, seconds: float = 60.0) -> list[Sample]:
    bootstraps = {samples.SERVER: bootstrap} if bootstrap is not None else {}
    return [server(0, bootstraps=bootstraps), server(seconds, bootstraps=bootstraps)]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param(asked(registered(4, missing=2)), [("breach", (tag(2),))], id="404 for one rank"),
        pytest.param(asked(registered(3, ready=False)), [("breach", ())], id="three of four"),
        pytest.param(asked(registered(3, ready=False), seconds=5), [], id="ready a moment ago"),
        pytest.param(asked(registered(4)), [], id="all there"),
        pytest.param(asked(registered(3, expected=None, ready=False)), [], id="nobody knows how many"),
        pytest.param(asked(None), [], id="no bootstrap server asked"),
    ],
)
def test_registrations(told: list[Sample], expected: list[tuple[str, tuple[str, ...]]]) -> None:
    verdict = judge(*told)
    assert [(one.severity, one.ranks) for one in found(verdict, "PD-RANK-MISSING")] == expected


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (registered(3, ready=False), "3 of 4 ranks have registered; the bootstrap server names none until all have"),
        (registered(3, None, ready=False), "3 ranks have registered; the bootstrap server names none until all have"),
        (None, "no answer of a bootstrap server for this rank"),
    ],
)
def test_why_a_registration_is_not_known(told: Bootstrap | None, why: str) -> None:
    line = judge(*asked(told)).ranks[0].line("pd.registered")
    assert (line.seen, line.detail) == (None, why)


def test_more_registrations_than_ranks() -> None:
    assert severities(judge(*asked(registered(5))), "PD-DUPLICATE") == ["warn"]
    assert severities(judge(*asked(registered(4))), "PD-DUPLICATE") == []


def test_a_rank_that_gave_up_registering() -> None:
    events = (
        event("Prefill register attempt 5/5 failed: Connection refused", tag(3)),
        event("Prefill instance failed to register to bootstrap server after 5 retries", tag(3)),
    )
    verdict = judge(server(1, *events))
    (finding,) = found(verdict, "PD-RANK-MISSING")
    assert (finding.ranks, finding.evidence["last_reason"]) == ((tag(3),), "Connection refused")
    assert verdict.ranks[3].line("pd.registered").seen == 0
    told = asked(registered(3, ready=False))
    (finding,) = found(judge(told[0], replace(told[1], events=events)), "PD-RANK-MISSING")
    assert finding.message.endswith(
        "; 3 of 4 ranks have registered with the bootstrap server, and it serves nobody until all do"
    )
    assert severities(judge(server(1, events[0])), "PD-RANK-MISSING") == [], "an attempt that may yet succeed"


TRANSFERS = "kv_transfer_latency_ms_count"


@pytest.mark.parametrize(
    ("counts", "args", "expected"),
    [
        pytest.param((25, 25, 25), SPLIT, (tag(3),), id="LayerSplit, and one rank sends nothing"),
        pytest.param((25, 25, 25, 1), SPLIT, (), id="it has sent once"),
        pytest.param((19, 25, 25), SPLIT, (), id="too early to tell"),
        pytest.param((25, 25, 25), PREFILL, (), id="without LayerSplit ranks but CP 0 are dummies"),
        pytest.param((), SPLIT, (), id="no transfer yet"),
    ],
)
def test_transfers_under_layersplit(counts: tuple[float, ...], args: dict[str, Any], expected: tuple[str, ...]) -> None:
    verdict = judge(counting(0, TRANSFERS, *counts, args=args))
    assert tuple(rank for one in found(verdict, "PD-RANK-MISSING") for rank in one.ranks) == expected


NO_RDMA = "W20250516 09:00:52.240088 45697 topology.cpp:55] No RDMA devices found, check your device installation"
TCP = "I20250516 09:00:52.240238 45697 tcp_transport.cpp:241] TcpTransport: listen on port 16218"
RDMA = "I20250516 09:00:52.240238 45697 rdma_transport.cpp:41] RdmaTransport: listen on port 16218"
HCAS = "I20250516 09:00:52.240196 45697 transfer_engine.cpp:127] Topology discovery complete. Found 4 HCAs."


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param((NO_RDMA, TCP), ["warn"], id="no device"),
        pytest.param((TCP,), ["warn"], id="listens on TCP"),
        pytest.param((HCAS, RDMA, TCP), [], id="RDMA too"),
        pytest.param((HCAS,), [], id="devices found"),
        pytest.param((), [], id="nothing logged"),
    ],
)
def test_transport(lines: tuple[str, ...], expected: list[str]) -> None:
    assert severities(judge(server(1, *map(event, lines))), "PD-TRANSPORT") == expected


def asking(*words: str) -> Sample:
    """The server, which runs mooncake, with these words on its command line."""
    sample = server(1)
    assert sample.processes is not None
    main = replace(sample.processes.servers[0], argv=("python", "-m", "sglang.launch_server", *words))
    return replace(sample, processes=replace(sample.processes, servers=(main,)))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--disaggregation-transfer-backend", "mooncake_tcp"), "by choice"),
        (("--disaggregation-transfer-backend=nixl",), "nixl was asked for, mooncake runs"),
        (("--disaggregation-transfer-backend", "mooncake"), None),
        ((), None),
    ],
)
def test_what_was_asked_for(words: tuple[str, ...], says: str | None) -> None:
    told = found(judge(asking(*words)), "PD-TRANSPORT")
    assert [says in finding.message for finding in told if says] == ([True] if says else [])
    assert bool(told) == (says is not None)


def test_lines_of_a_rank_without_a_role_say_why() -> None:
    line = judge(samples.healthy()).ranks[0].line("pd.transfers")
    assert (line.seen, line.status, line.detail) == (None, "unknown", "no prefill or decode role")
