"""LayerSplit: what ranks log of their layers, against the plan and against each other."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from collectors.serverlog_lines import match_message
from ranktop.reconcile.layers import logged_range, uncovered
from ranktop.sample import Event, MetricsPage, Processes, RankTag, Sample, ServerInfo, ServerProcess
from support import samples
from tests.reconcile.tier_story import found, judge, severities

LAYERS = 78
RANGES = ((0, 20), (20, 40), (40, 59), (59, 78))
SPLIT: dict[str, Any] = {
    "model_path": "zai-org/GLM-5.2-FP8",
    "tp_size": 4,
    "attn_cp_size": 4,
    "enable_prefill_cp": True,
    "cp_strategy": "interleave",
    "disaggregation_mode": "prefill",
    "disaggregation_transfer_backend": "mooncake",
    "enable_dsa_cache_layer_split": True,
    "kv_cache_dtype": "fp8_e4m3",
}


def tag(cp: int) -> str:
    return f"ATTN_CP{cp} TP{cp}"


def event(message: str, cp: int) -> Event:
    found_here = match_message(message)
    assert found_here is not None, message
    kind, fields = found_here
    return Event(samples.START, kind, message, samples.SERVER, tag(cp), fields)


def shard(cp: int, own: tuple[int, int] | None = None, ranges: tuple[tuple[int, int], ...] = RANGES) -> Event:
    start, end = own or ranges[cp]
    parts = "; ".join(f"r{number}:[{first},{last})" for number, (first, last) in enumerate(ranges))
    return event(
        f"Layer shard plan (continuous): layer_num={LAYERS}, shard_size={len(ranges)}, rank={cp}, "
        f"local=[{start},{end}), global=[{start},{end}), partitions={parts}",
        cp,
    )


def comm(cp: int) -> Event:
    text = f"Initialized dedicated layer-shard broadcast NCCL communicator: rank={cp}, world_size=4"
    return event(text, cp)


HEALTHY = (*(shard(cp) for cp in range(4)), *(comm(cp) for cp in range(4)))


def server(*events: Event, seconds: float = 60.0, page: MetricsPage | None = None, **args: Any) -> list[Sample]:
    """A prefill server of four context-parallel ranks, ready for a minute, that has logged these lines."""
    info = ServerInfo(samples.SERVER, version="0.5.18", is_ready=True, args=SPLIT | args)
    ranks = tuple(replace(samples.rank_process(cp), tag=RankTag(cp=cp, tp=cp)) for cp in range(4))
    processes = Processes((ServerProcess(samples.SERVER, samples.MAIN_PID, 100),), ranks)
    told = [
        replace(
            samples.healthy(at),
            processes=processes,
            infos={samples.SERVER: info},
            metrics={samples.SERVER: page} if page is not None else {},
        )
        for at in (0.0, seconds)
    ]
    return [replace(told[0], events=events), told[1]]


def test_the_planned_ranges_are_no_finding() -> None:
    verdict = judge(*server(*HEALTHY))
    assert [finding for finding in verdict.findings if finding.code.startswith("LAYER")] == []
    line = verdict.ranks[3].line("layers.owned")
    assert (line.planned, line.seen, line.status, line.source) == (19, 19, "ok", "logged")


@pytest.mark.parametrize(
    ("code", "events", "ranks"),
    [
        pytest.param("LAYER-RANGE", (*HEALTHY, shard(2, (39, 59))), (tag(2),), id="one layer early: owned twice"),
        pytest.param("LAYER-RANGE", (*HEALTHY, shard(3, (59, 77))), (tag(3),), id="the last layer is nobody's"),
        pytest.param("LAYER-RANGE", (shard(0), shard(1)), (), id="two ranks have not logged yet"),
        pytest.param("LAYER-RANGE", (), (), id="nothing logged"),
        pytest.param("LAYER-DISAGREE", (*HEALTHY, shard(1, ranges=RANGES[:2])), (), id="another group size"),
        pytest.param("LAYER-NO-COMM", HEALTHY[:-1], (tag(3),), id="no communicator on one rank"),
        pytest.param("LAYER-NO-COMM", HEALTHY[4:], (), id="no shard plan either"),
    ],
)
def test_rule(code: str, events: tuple[Event, ...], ranks: tuple[str, ...]) -> None:
    verdict = judge(*server(*events))
    expected = ["breach"] if ranks or code == "LAYER-DISAGREE" else []
    assert severities(verdict, code) == expected
    if ranks:
        assert found(verdict, code)[0].ranks == ranks


def test_agreeing_ranks_do_not_disagree() -> None:
    assert severities(judge(*server(*HEALTHY)), "LAYER-DISAGREE") == []
    assert severities(judge(*server()), "LAYER-DISAGREE") == []


def test_evidence_names_both_ranges() -> None:
    (finding,) = found(judge(*server(*HEALTHY, shard(2, (39, 59)))), "LAYER-RANGE")
    assert finding.evidence == {
        "logged_range": [39, 59],
        "planned_range": [40, 59],
        "layers_without_one_owner": [39],
    }


def test_a_communicator_may_come_a_moment_later() -> None:
    assert severities(judge(*server(*HEALTHY[:-1], seconds=20)), "LAYER-NO-COMM") == []


@pytest.mark.parametrize(
    ("events", "args", "expected"),
    [
        pytest.param((), {"attn_cp_size": 1}, ["breach"], id="CP resolved to 1"),
        pytest.param(HEALTHY, {}, [], id="split"),
        pytest.param((shard(0, (0, 78)),), {}, ["breach"], id="a rank holds all layers"),
        pytest.param((), {"attn_cp_size": 1, "enable_dsa_cache_layer_split": False}, [], id="not asked for"),
    ],
)
def test_asked_for_and_not_split(events: tuple[Event, ...], args: dict[str, Any], expected: list[str]) -> None:
    assert severities(judge(*server(*events, **args)), "LAYER-CP1") == expected


def test_a_shard_plan_with_absurd_numbers_is_not_believed() -> None:
    huge = replace(shard(0), fields=shard(0).fields | {"layers": 10**9})
    assert logged_range(huge) is None
    assert logged_range(replace(shard(0), rank=None)) is None


def test_layers_without_exactly_one_owner() -> None:
    assert uncovered(RANGES, LAYERS) == ()
    assert uncovered(((0, 20), (19, 40)), 42) == (19, 40, 41)
