"""One cause, one row."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ranktop.finding import Finding, exit_code, worst
from ranktop.reconcile.grouping import group, rank_span


def finding(rank: str | None, severity: str = "warn", code: str = "NUMA-REMOTE", server: str = "s") -> Finding:
    return Finding(
        code,
        severity,
        f"{code} on {rank}",
        scope="rank",
        server=server,
        rank=rank,
        since="2026-01-01T00:00:0" + (rank or "0")[-1] + "Z",
    )  # type: ignore[arg-type]


def test_the_same_finding_on_several_ranks_is_one_row_in_rank_order() -> None:
    order = {("s", f"TP{number}"): number for number in range(8)}
    (merged,) = group([replace(finding("TP5"), message="far"), replace(finding("TP2"), message="far")], order)
    assert merged.ranks == ("TP2", "TP5")
    assert merged.rank is None
    assert merged.since == "2026-01-01T00:00:02Z"
    assert merged.message == "far", "what holds for all ranks that are named needs no count"


def test_messages_that_differ_are_counted() -> None:
    order = {("s", f"TP{number}"): number for number in range(8)}
    (merged,) = group([finding("TP5"), finding("TP2")], order)
    assert merged.message == "NUMA-REMOTE on TP5 (and 1 more like it)"


def test_a_single_finding_stays_as_it_is() -> None:
    assert group([finding(None)], {})[0].message == finding(None).message


def test_servers_and_severities_stay_apart_and_the_worst_leads() -> None:
    rows = group([finding("TP0"), finding("TP0", server="t"), finding("TP1", "critical")], {})
    assert [(row.severity, row.server) for row in rows] == [("critical", "s"), ("warn", "s"), ("warn", "t")]


def test_a_finding_of_the_node_has_no_ranks() -> None:
    (row,) = group([finding(None, code="HOST-HEADROOM")], {})
    assert (row.rank, row.ranks, row.message) == (None, (), "HOST-HEADROOM on None")


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        (["TP3"], "TP3"),
        (["TP0", "TP1"], "TP0, TP1"),
        ([f"TP{number}" for number in range(8)], "TP0-7"),
        (["TP0", "TP2", "TP4"], "TP0, TP2, TP4"),
        (["DP0 TP0", "DP0 TP1", "DP1 TP0", "DP1 TP1"], "DP0 TP0, DP0 TP1, DP1 TP0 +1"),
        ([f"DP{number // 2} TP{number} EP{number}" for number in range(8)], "DP0-3 TP0-7 EP0-7"),
        ([f"PP1 TP{number}" for number in (4, 5, 6)], "PP1 TP4-6"),
        ([f"DP{7 - number} TP{number}" for number in range(8)], "DP7 TP0, DP6 TP1, DP5 TP2 +5"),
        (["TP0", "TP1", "DP0 TP2"], "TP0, TP1, DP0 TP2"),
        (["a TP0", "b TP1", "c TP2"], "a TP0, b TP1, c TP2"),
        (["x", "y", "z"], "x, y, z"),
        ([], ""),
    ],
)
def test_span(ranks: list[str], text: str) -> None:
    assert rank_span(ranks) == text


def test_exit_codes_follow_the_worst() -> None:
    assert worst([]) is None
    assert exit_code([finding("TP0", "warn")]) == 0
    assert exit_code([finding("TP0", "warn"), finding("TP0", "breach")]) == 1
