"""The fleet as lines: what they say, in which order, at any width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktop.fleet.across import across
from ranktop.fleet.look import Fleet
from ranktop.fleet.rows import NodeRow, OpenFinding, ServerFacts
from ranktop.reconcile.verdict import TierShares
from tui.draw.glyphs import ASCII, UNICODE
from tui.draw.spans import width as width_of
from tui.trails import Trails
from tui.views.fleet import FLEET_SORT, FleetView, arranged_nodes, fleet_verdict, next_fleet_sort, worst_node
from tui.views.view import Frame, NodeTarget, Sort

ROWS = (
    NodeRow(
        "node-a:9472",
        "ranktop",
        group="x",
        severity="warn",
        findings=(OpenFinding("NUMA-REMOTE", "warn", 3),),
        servers=(ServerFacts("s", version="0.5.18", model="m", role="prefill"),),
        host_available_bytes=346e9,
        hbm_free_bytes=12 * 2**30,
        pressure_ratio=0.012,
        l2_used_ratio=0.85,
        tiers=TierShares(0.5, 0.25, 0.05, 0.2),
        ttft_p95_seconds=0.4,
        running_requests=3,
        queued_requests=1,
    ),
    NodeRow("node-b:9472", "ranktop", group="x", severity="critical", findings=(OpenFinding("RANK-DEAD", "critical"),)),
    NodeRow("node-c:9472", "ranktop", group="y"),
    NodeRow("node-d:9472", "gone", group="y"),
    NodeRow("node-e:30000", "sglang"),
)


def drawn(rows: tuple[NodeRow, ...] = ROWS, width: int = 160, **frame: object) -> list[str]:
    seen = Fleet(1_790_000_000.0, rows, across(rows))
    page = FleetView(seen, "cluster").draw(
        Frame(fleet_verdict(seen, "fleet", None), width, UNICODE, Trails(), FLEET_SORT)._replace(**frame)  # type: ignore[arg-type]
    )
    lines = [*page.head, *(row.line for row in page.rows), *page.tail_head, *(row.line for row in page.tail or ())]
    assert {width_of(text_line) for text_line in lines} == {width}
    return ["".join(span.text for span in text_line).rstrip() for text_line in lines]


def test_every_value_has_its_place() -> None:
    (line,) = [line for line in drawn() if "node-a" in line]
    for word in ("prefill", "12.0", "346", "1.2", "85", "50/25/5", "400 ms", "3/1", "0.5.18", "NUMA-REMOTE(3)"):
        assert f" {word}" in line


def test_groups_stand_together_and_the_worst_leads() -> None:
    order = [line.split()[1] for line in drawn() if "node-" in line]
    assert order == ["node-b:9472", "node-a:9472", "node-d:9472", "node-c:9472", "node-e:30000"]
    assert [line.strip() for line in drawn() if "cluster" in line] == [
        "cluster x  2 nodes",
        "cluster y  2 nodes",
        "no cluster  1 node",
    ]


def test_the_sentence_counts_what_is_wrong_and_what_is_blind() -> None:
    verdict = fleet_verdict(Fleet(0.0, ROWS, warnings=("store b",)), "fleet", None)
    assert verdict.headline == ("3 nodes: 1 at critical, 1 at warn; 1 no exporter; 1 not scraped; incomplete: store b")
    assert verdict.headline_severity == "critical"
    assert fleet_verdict(Fleet(0.0, ROWS), "fleet", "refused").headline == "refused"
    assert fleet_verdict(Fleet(0.0, ROWS[3:]), "fleet", None).headline == "1 no exporter; 1 not scraped"
    assert fleet_verdict(Fleet(0.0, ()), "fleet", None).headline == "no node"
    assert fleet_verdict(Fleet(0.0, ROWS[2:3]), "fleet", None).headline_severity is None


def test_sorting_goes_round_and_missing_values_come_last() -> None:
    sort, seen = FLEET_SORT, []
    while (sort := next_fleet_sort(sort)) != FLEET_SORT:
        seen.append(sort.keys[0])
        assert arranged_nodes(ROWS[:2], sort)[0].instance == "node-a:9472", sort
    assert seen == ["node", "free GiB", "avail GB", "psi %", "L2 %", "hits L1/L2/L3 %", "ttft p95", "run/queue"]
    turned = Sort(("free GiB",), True)
    assert [row.instance for row in arranged_nodes(ROWS[:2], turned)] == ["node-a:9472", "node-b:9472"]


@pytest.mark.parametrize(
    ("wanted", "nodes"),
    [("rank-dead", 1), ("PREFILL", 1), ("not scraped", 0), ("gone", 1), ("9472", 4), ("nothing", 0)],
)
def test_the_filter(wanted: str, nodes: int) -> None:
    assert len(arranged_nodes(ROWS, FLEET_SORT, wanted)) == nodes


def test_the_worst_node_is_what_the_sentence_is_of() -> None:
    assert worst_node(Fleet(0.0, ROWS)) == NodeTarget("node-b:9472")
    assert worst_node(Fleet(0.0, ROWS), "numa-remote") == NodeTarget("node-a:9472")
    assert worst_node(Fleet(0.0, ())) is None


def test_no_node_says_why() -> None:
    assert any("no node matches the filter" in row for row in drawn(filter="nothing"))
    assert any("does this Prometheus scrape `ranktop exporter`" in row for row in drawn(()))


def test_trouble_is_whole_on_a_narrow_screen() -> None:
    told = "shown is 10:59:42: http://prometheus:9090: no complete answer within 5 s (busy, or a wrong address); again"
    seen = Fleet(0.0, ROWS)
    for width, is_below in ((80, True), (160, False)):
        page = FleetView(seen, "cluster", told).draw(
            Frame(fleet_verdict(seen, "fleet", told), width, UNICODE, Trails(), FLEET_SORT)
        )
        text = " ".join("".join(span.text for span in row.line).strip() for row in page.rows)
        assert (told in text) == is_below


def test_memory_that_is_nearly_gone_is_not_zero() -> None:
    few = NodeRow("node-a:9472", "ranktop", host_available_bytes=146e6)
    (line,) = [line for line in drawn((few,)) if "node-a" in line]
    assert " 0.15" in line


def test_rows_open_their_node() -> None:
    seen = Fleet(0.0, ROWS)
    page = FleetView(seen).draw(Frame(fleet_verdict(seen, "fleet", None), 80, ASCII, Trails(), FLEET_SORT))
    assert next(row.target for row in page.rows if row.target) == NodeTarget("node-b:9472")


@given(st.text(max_size=40), st.integers(20, 200))
def test_names_from_outside_are_text_and_fit(name: str, width: int) -> None:
    row = NodeRow(name, "ranktop", group=name, severity="breach", findings=(OpenFinding(name, "breach", 2),))
    for line in drawn((row, NodeRow("other", "gone", group=None)), width):
        assert all(letter == " " or not letter.isspace() for letter in line)
        assert "\x1b" not in line
