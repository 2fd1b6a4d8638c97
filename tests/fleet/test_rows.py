"""Answers to rows, rows to findings, series back to a verdict: pure functions over made-up answers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from ranktop.fleet.across import across
from ranktop.fleet.look import look_back
from ranktop.fleet.node import bare_verdict, node_verdict
from ranktop.fleet.queries import Scope, ScopeError, node_query, overview_query
from ranktop.fleet.read import Wanted, strip_span
from ranktop.fleet.rows import NodeRow, OpenFinding, ServerFacts, exporter_rows, sglang_rows
from ranktop.fleet.source import Answer, Row, Track
from ranktop.reconcile.verdict import TierShares, Verdict
from support import fleet


def rows_of(verdict: Verdict) -> list[Row]:
    return [
        Row({"__name__": sample.name, "instance": "a:1", **sample.labels}, float(sample.value))
        for family in text_string_to_metric_families(fleet.page(verdict).decode())
        for sample in family.samples
    ]


@pytest.mark.parametrize("before", [fleet.healthy(), fleet.troubled()])
def test_a_verdict_comes_back_as_far_as_it_was_exported(before: Verdict) -> None:
    after = node_verdict(rows_of(before), "a:1", 0.0)
    assert after is not None
    assert after.sample.at_unix_seconds == before.sample.at_unix_seconds
    for old, new in zip(before.ranks, after.ranks, strict=True):
        assert (old.server, old.rank, old.pid, old.gpu, old.numa) == (new.server, new.rank, new.pid, new.gpu, new.numa)
        for line in old.lines:
            told = new.line(line.line)
            assert (told.seen, told.planned, told.difference) == (line.seen, line.planned, line.difference)
            if line.seen is not None or line.planned is not None:
                assert (told.unit, told.status) == (line.unit, line.status)
    for line in before.node.lines:
        told = after.node.line(line.line)
        assert (told.seen, told.planned, told.difference) == (line.seen, line.planned, line.difference)
    assert after.tiers.host_hit == before.tiers.host_hit
    assert after.servers[0].service == before.servers[0].service
    assert [(one.code, one.severity, one.ranks, one.since) for one in after.findings] == [
        (one.code, one.severity, one.ranks, one.since) for one in before.findings
    ]
    assert {(one.name, one.server, one.state) for one in after.sample.sources} == {
        (one.name, one.server, one.state) for one in before.sample.sources
    }


def test_no_series_no_verdict() -> None:
    assert node_verdict([], "a:1", 0.0) is None
    assert "no exporter" in bare_verdict(NodeRow("a:1", "sglang"), 5.0).headline
    gone = bare_verdict(NodeRow("a:1", "gone", tiers=TierShares(0.5), running_requests=3), 5.0)
    assert gone.headline == "not scraped at this time: is the node up, and `ranktop exporter` on it?"
    assert gone.tiers.device_hit is None, "what was before is not of this moment"
    assert gone.node.line("requests.running").seen is None


def test_ranks_come_in_the_order_of_their_numbers() -> None:
    rows = rows_of(fleet.healthy())
    rows += [
        Row({"__name__": "ranktop_rank_info", "server": "127.0.0.1:30000", "rank": rank}, 1.0)
        for rank in ("TP10", "DP1 TP0")
    ]
    verdict = node_verdict(rows, "a:1", 0.0)
    assert verdict is not None
    names = [rank.rank for rank in verdict.ranks]
    assert names.index("TP7") < names.index("TP10")


def test_a_row_holds_what_its_answers_say_and_none_for_the_rest() -> None:
    answers = {
        "severity": [Row({"instance": "a:1", "cluster": "x"}, 3.0)],
        "gone": [Row({"instance": "b:1"}, 4.0), Row({"instance": "a:1"}, 4.0)],
        "findings": [
            Row({"instance": "a:1", "code": "NUMA-REMOTE", "severity": "warn"}, 2.0),
            Row({"instance": "a:1", "code": "HOST-POOL-OVER", "severity": "breach"}, 1.0),
        ],
        "l2": [Row({"instance": "a:1", "line": "l2.used"}, 30.0), Row({"instance": "a:1", "line": "l2.total"}, 120.0)],
    }
    present, gone = exporter_rows(answers, "cluster")
    assert (present.instance, present.group, present.severity) == ("a:1", "x", "breach")
    assert present.findings == (OpenFinding("HOST-POOL-OVER", "breach"), OpenFinding("NUMA-REMOTE", "warn", 2))
    assert present.l2_used_ratio == 0.25
    assert present.hbm_free_bytes is present.ttft_p95_seconds is present.tiers.host_hit is None
    assert (gone.instance, gone.origin, gone.severity) == ("b:1", "gone", None)


def test_tiers_from_sglang_alone() -> None:
    answers = {
        "prompt": [Row({"instance": "a:1"}, 100.0)],
        "cached": [
            Row({"instance": "a:1", "cache_source": source}, tokens)
            for source, tokens in (("device", 40.0), ("host", 20.0), ("storage_Mooncake", 10.0))
        ],
    }
    (row,) = sglang_rows([Row({"instance": "a:1"}, 8.0)], answers)
    tiers = row.tiers
    assert (tiers.device_hit, tiers.host_hit, tiers.storage_hit, tiers.miss) == (0.4, 0.2, 0.1, 0.3)
    (unsplit,) = sglang_rows(
        [Row({"instance": "a:1"}, 8.0)], {**answers, "cached": [Row({"cache_source": "total"}, 1.0)]}
    )
    assert unsplit.tiers.device_hit == 0.0


@pytest.mark.parametrize("selector", ['cluster="a"', 'cluster=~"a|b", env!="test"', 'x="a\\"b"', ""])
def test_selectors_stand_in_every_query(selector: str) -> None:
    query = overview_query(Scope(selector, "cluster"))
    assert query.count(selector) >= query.count("label_replace(")
    assert node_query('we"ird', Scope(selector)).count('instance="we\\"ird"') == 1


@pytest.mark.parametrize("selector", ["cluster", 'a="b"} or up{c="d"', 'a="b" c="d"', 'a="b",', 'a="unclosed'])
def test_what_is_no_selector_is_refused(selector: str) -> None:
    if selector == 'a="b",':
        Scope(selector)
        return
    with pytest.raises(ScopeError):
        Scope(selector)


def test_what_is_no_label_is_refused() -> None:
    with pytest.raises(ScopeError):
        Scope(group="a) or (b")


def server(**facts: str) -> ServerFacts:
    usual = {"version": "0.5.18", "model": "m", "role": "unified", "tp_size": "8", "page_size": "64"}
    return ServerFacts("s", **(usual | {"kv_cache_dtype": "fp8_e4m3"} | facts))  # type: ignore[arg-type]


def node(name: str, facts: ServerFacts | None = None, **fields: object) -> NodeRow:
    return replace(NodeRow(name, "ranktop", servers=(facts or server(),)), **fields)  # type: ignore[arg-type]


PREFILL, DECODE = server(role="prefill"), server(role="decode")
SLOW = [node(f"n{number}", ttft_p95_seconds=0.5) for number in range(5)]


@pytest.mark.parametrize(
    ("rows", "codes"),
    [
        ([node("a"), node("b")], []),
        ([node("a"), node("b"), node("c", server(version="0.5.23"))], [("LAUNCH-DRIFT", "warn")]),
        ([node("a", PREFILL), node("b", server(role="decode", page_size="1"))], [("LAUNCH-DRIFT", "breach")]),
        ([node("a", PREFILL), node("b", server(role="decode", version="0.5.23"))], [("LAUNCH-DRIFT", "warn")]),
        ([node("a"), node("b", server(model="other", page_size="1"))], []),
        ([node("a", group="x"), node("b", server(page_size="1"), group="y")], []),
        ([node("a"), node("b", ServerFacts("s", model="m"))], []),
        (
            [node("a", server(storage_backend="mooncake")), node("b", server(storage_backend="mooncake", tp_size="4"))],
            [("L3-SHARED-MISMATCH", "warn")],
        ),
        ([node("a", server(storage_backend="mooncake")), node("b", server(storage_backend="hf3fs", tp_size="4"))], []),
        ([node("a", server(storage_backend="file")), node("b", server(storage_backend="file", tp_size="4"))], []),
        (
            [node("a", PREFILL), node("b", DECODE, findings=(OpenFinding("PD-STUCK", "critical"),))],
            [("PD-STUCK", "critical")],
        ),
        ([node("a", PREFILL), node("b", PREFILL, findings=(OpenFinding("PD-STUCK", "critical"),))], []),
        ([node("a", PREFILL), node("b", DECODE, findings=(OpenFinding("GPU-XID", "critical"),))], []),
        ([*SLOW, node("slow", ttft_p95_seconds=3.0)], [("NODE-SLOW", "warn")]),
        ([*SLOW, node("near", ttft_p95_seconds=0.95)], []),
        ([*SLOW[:2], node("slow", ttft_p95_seconds=3.0)], []),
        ([*SLOW, *(node(f"slow{number}", ttft_p95_seconds=3.0) for number in range(3))], []),
        ([*SLOW, node("slow", server(role="decode"), ttft_p95_seconds=3.0)], []),
    ],
)
def test_what_only_several_nodes_show(rows: list[NodeRow], codes: list[tuple[str, str]]) -> None:
    assert [(finding.code, finding.severity) for finding in across(rows)] == codes


def test_a_hand_off_is_told_from_both_ends() -> None:
    (finding,) = across([node("a", PREFILL), node("b", DECODE, findings=(OpenFinding("PD-STUCK", "critical"),))])
    assert finding.message == "the hand-off, both ends: prefill a: nothing; decode b: PD-STUCK"
    assert finding.server == "b"


class Told:
    """A source with one track."""

    def __init__(self, *points: tuple[float, float]) -> None:
        self._points = points

    def instant(self, query: str, at_unix_seconds: float | None = None) -> Answer:
        raise AssertionError(query)

    def over(self, query: str, start: float, end: float, step_seconds: float) -> list[Track]:
        assert step_seconds == 10.0
        return [Track({}, self._points)] if self._points else []


def test_changes_of_severity_over_time_and_gaps() -> None:
    told = Told((0, 0), (10, 1), (20, 3), (30, 3), (80, 3), (90, 2))
    changes = look_back(told, Scope(), 0, 100, 10)
    assert changes == ((0, None), (20, "breach"), (40, None), (80, "breach"), (90, "warn"))
    assert look_back(Told(), Scope(), 0, 100, 10) == ((0, None),)
    gone = look_back(Told((0, 3), (10, 3), (20, 3)), Scope(), 0, 100, 10)
    assert gone == ((0, None), (0, "breach"), (30, None)), "gone now: not in breach until now"


def test_the_strip_ends_now_and_stays_while_one_looks_back() -> None:
    assert strip_span(Wanted(1000.0, span_seconds=600), None) == (400.0, 1000.0)
    assert strip_span(Wanted(1010.0, 700.0, span_seconds=600), (400.0, 1000.0)) == (400.0, 1000.0)
    assert strip_span(Wanted(1010.0, 100.0, span_seconds=600), (400.0, 1000.0)) == (-200.0, 400.0)
    assert strip_span(Wanted(1010.0, 700.0, span_seconds=1200), (400.0, 1000.0)) == (-190.0, 1010.0)
