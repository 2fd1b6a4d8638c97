"""What a tired reader would stumble over: cut words, empty places without a reason, colours that say another thing."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from ranktop.finding import Finding
from ranktop.plan import compute_plan, parse_launch
from ranktop.reconcile import Reconciler, Verdict
from ranktop.reconcile.verdict import Line, RankVerdict, ServiceLatency, TierShares
from ranktop.sample import SourceState
from support import samples
from support.app import breach, make_app, troubled
from support.feed import StoryFeed
from support.pages import page, rows, text
from tui.draw.chart import Chart, draw_chart
from tui.draw.glyphs import UNICODE
from tui.draw.numbers import GIB
from tui.draw.spans import width
from tui.views.budget import BudgetView
from tui.views.finding_detail import FindingDetail
from tui.views.finding_rows import draw_findings
from tui.views.layers import LayersView
from tui.views.node_rows import draw_host, draw_sources, draw_tiers
from tui.views.numa import NumaView
from tui.views.rank_detail import RankDetail
from tui.views.rank_rows import draw_grid
from tui.views.ranks import RanksView
from tui.views.service import ServiceView
from tui.views.sources import SourcesView
from tui.views.tiers import TiersView
from tui.views.view import RankTarget
from tui.views.what_if import WhatIf
from tui.widgets.lines import Lines

LONG = "127.0.0.1:30000 is no PD prefill server: it has no bootstrap port, so no rank of it can be registered anywhere"


def healthy() -> Verdict:
    return Reconciler().update(samples.healthy())


@pytest.mark.parametrize("key", ["1", "2", "3", "7", "8", "9"])
@pytest.mark.parametrize("size", [(80, 12), (80, 24), (120, 40)])
async def test_a_scroll_bar_hides_no_letter(key: str, size: tuple[int, int]) -> None:
    app = make_app(StoryFeed(troubled))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.press(key)
        await pilot.pause()
        for part, lines in (("body", app._main._page.rows), ("tail", app._main._page.tail or ())):
            room = app._main.query_one(f"#{part}", Lines).size.width
            assert [row for row in lines if width(row.line) > room] == []


async def test_the_cell_of_the_bar_is_used_where_nothing_scrolls() -> None:
    app = make_app(StoryFeed([samples.healthy()]))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("2")
        await pilot.pause()
        assert {width(row.line) for row in app._main._page.rows} == {79}
        await pilot.press("4")
        await pilot.pause()
        assert {width(row.line) for row in app._main._page.rows} == {80}


def test_every_numa_node_or_the_tightest() -> None:
    verdict = healthy()
    assert "   free n0  80.0 n1  90.0 GB" in text(draw_host(verdict, 120, UNICODE))
    like = verdict.node.line("numa.1.headroom")
    more = (replace(like, line=f"numa.{node}.headroom", seen=1e9 * (20 - node)) for node in range(2, 8))
    many = replace(verdict, node=replace(verdict.node, lines=(*verdict.node.lines, *more)))
    assert "   least free n7  13.0 GB" in text(draw_host(many, 120, UNICODE))
    assert "n7  13.0 GB" in text(draw_host(many, 180, UNICODE))
    assert "least" not in text(draw_host(many, 180, UNICODE))
    bare = replace(verdict.node, lines=tuple(one for one in verdict.node.lines if not one.line.startswith("numa.")))
    assert "free n" not in text(draw_host(replace(verdict, node=bare), 120, UNICODE))


def test_hits_that_cannot_be_told_say_why() -> None:
    none = replace(healthy(), tiers=TierShares(source="reported", window_tokens=0, detail="no prefill in the window"))
    assert "hits – (no prefill in the window)" in text(draw_tiers(none, 120, UNICODE))
    miss = replace(none, tiers=TierShares(miss=0.25, detail="no breakdown by tier"))
    assert "hits L1    –  L2    –  L3    –  miss 25.0  %" in text(draw_tiers(miss, 120, UNICODE))


@pytest.mark.parametrize("cells", [80, 100, 120, 200])
def test_a_source_says_all_of_what_came_back(cells: int) -> None:
    verdict = healthy()
    states = (*verdict.sample.sources, SourceState("bootstrap", "no_data", server=samples.SERVER, detail=LONG))
    shown = rows(SourcesView(), replace(verdict, sample=replace(verdict.sample, sources=states)), cells)
    at = next(number for number, row in enumerate(shown) if row.startswith(" bootstrap"))
    assert "not here" in shown[at]
    assert "no_data" not in shown[at]
    told = " ".join(" ".join(shown[at:]).split())
    for word in LONG.removeprefix("127.0.0.1:30000 ").split():
        assert word in told
    assert "…" not in told
    assert max(map(len, shown)) <= cells


def test_an_axis_ends_at_a_round_number_of_its_unit() -> None:
    chart = Chart("hbm", [96.8 * GIB], lambda value: f"{value / GIB:.1f} GiB", unit=GIB)
    assert text(draw_chart(chart, 60, 6, UNICODE)[1]).startswith("100.0 GiB")


def test_the_findings_of_a_rank_have_their_mark_and_colour() -> None:
    verdict = Reconciler().update(breach(samples.healthy()))
    drawn = page(RankDetail(RankTarget(samples.SERVER, "TP3")), verdict, 60)
    first = drawn.rows[0].line
    assert text(first).startswith(" ■ HOST-POOL-OVER")
    assert text(first).rstrip().endswith("…"), "that it is cut can be seen"
    assert first[0].role == "breach"


def test_the_titles_of_a_rank_s_table_stand_above_it() -> None:
    shown = rows(RankDetail(RankTarget(samples.SERVER, "TP3")), healthy())
    at = next(number for number, row in enumerate(shown) if row.startswith(" line "))
    assert shown[at + 1] == " GPU memory (GiB)"


def test_layers_that_breach_the_plan_are_not_drawn_as_if_they_held_it() -> None:
    verdict = healthy()
    wrong = Finding("LAYER-RANGE", "breach", "owns layers [0,79)", server=samples.SERVER, rank="TP4", ranks=("TP4",))

    def logged(rank: RankVerdict) -> RankVerdict:
        lines = (replace(one, seen=79) if one.line == "layers.owned" else one for one in rank.lines)
        return replace(rank, lines=tuple(lines)) if rank.rank == "TP4" else rank

    shown = replace(verdict, findings=(wrong,), ranks=tuple(map(logged, verdict.ranks)))
    by_rank = {text(row.line).split()[0]: row.line for row in page(LayersView(), shown, 120).rows if row.target}
    assert "79/78" in text(by_rank["TP4"])
    assert {span.role for span in by_rank["TP4"] if "█" in span.text or "79/78" in span.text} == {"breach"}
    assert "LAYER-RANGE" in text(by_rank["TP4"])
    assert {span.role for span in by_rank["TP3"] if "█" in span.text} == {"accent"}
    assert "/78" not in text(by_rank["TP3"])


def test_a_rank_without_a_process_is_not_drawn_as_one_that_reports() -> None:
    verdict = Reconciler().update(samples.without_rank(samples.healthy(), 5))
    shown = rows(TiersView(), verdict)
    assert [row for row in shown if row.endswith("no process")] == [row for row in shown if row.startswith(" TP5 ")]
    remote = tuple(replace(rank, pid=None) for rank in verdict.ranks)
    assert not any("no process" in row for row in rows(TiersView(), replace(verdict, ranks=remote)))


def test_a_rank_without_a_process_says_so_where_its_pages_would_stand_and_why() -> None:
    judge = Reconciler()
    judge.update(samples.healthy())
    verdict = judge.update(samples.without_rank(samples.healthy(1), 5))
    shown = rows(NumaView(), verdict)
    assert [row for row in shown if row.rstrip().endswith("no process")] == [row for row in shown if " TP5 " in row]
    gone = next(rank for rank in verdict.ranks if rank.rank == "TP5")
    assert gone.line("numa.local").detail == "no process of this rank"


def test_a_source_that_was_not_read_yet_is_not_called_absent() -> None:
    """As in the first seconds, and at the beginning of a recording."""
    absent = SourceState("nvml", "no_data", code="absent", detail="no driver", took_seconds=0.1)
    for state, told in (
        (replace(absent, code="waiting", detail="not read yet", took_seconds=None), " sources 0 ok, 1 not read yet"),
        (absent, " sources 0 ok, 1 not here   no nvml here"),
    ):
        assert text(draw_sources((state,), samples.START, 120, UNICODE)).rstrip() == told


def test_no_acceptance_says_why() -> None:
    shown = rows(ServiceView(), healthy())
    assert any(row.endswith("accepted a step     – (spec off)") for row in shown)
    assert any("http active" in row for row in shown)


@pytest.mark.parametrize(("height", "is_whole"), [(38, True), (20, True), (15, False)])
def test_a_note_is_whole_where_there_is_room(height: int, is_whole: bool) -> None:
    message = (
        "L2 counters of 8 ranks are one series: " + "tokens were divided by the ranks of a group, " * 3 + "all of them"
    )
    verdict = replace(healthy(), findings=(Finding("METRICS-DEDUP", "info", message, server=samples.SERVER),))
    tail = page(RanksView(), verdict, 120, height).tail
    assert tail is not None
    told = " ".join(" ".join(text(row.line) for row in tail).split())
    assert told.endswith("all of them") is is_whole
    assert ("…" in told) is not is_whole


def test_the_status_outlives_the_source_on_a_narrow_screen() -> None:
    for cells in (79, 120):
        assert "status" in rows(BudgetView(), healthy(), cells)[2]
        assert "source" in rows(BudgetView(), healthy(), cells)[2]
    narrow = rows(BudgetView(), healthy(), 72)[2]
    assert "status" in narrow
    assert "source" not in narrow


def test_parts_of_a_bar_are_told_apart_without_colour() -> None:
    verdict = healthy()
    shares = TierShares(device_hit=0.5, host_hit=0.25, storage_hit=0.125, miss=0.125, window_tokens=9_112_959)
    told = rows(TiersView(), replace(verdict, tiers=shares), 80)
    bar, legend = next(pair for pair in itertools.pairwise(told) if "hits" in pair[0])
    assert "█" * 17 + "▓" * 8 + "▒" * 4 + "·" * 5 in bar
    assert bar.endswith("of 9,112,959 tokens since the start")
    assert " ".join(legend.split()) == "█ L1 50.0 % ▓ L2 25.0 % ▒ L3 12.5 % · miss 12.5 %"
    waterfall = next(one for one in rows(BudgetView(), verdict, 80) if "HBM" in one)
    assert waterfall == " HBM ███████▓▓·· █ weights 91.4 ▓ L1 24.7 of 139.7 GiB"


def test_a_rank_of_which_only_the_process_is_known_has_no_empty_bar() -> None:
    verdict = healthy()
    lines = (Line("hbm.total", seen=140 << 30, unit="bytes"), Line("hbm.process", seen=35 << 30, unit="bytes"))
    verdict = replace(verdict, ranks=(replace(verdict.ranks[0], lines=lines),))
    waterfall = next(one for one in rows(BudgetView(), verdict, 80) if "HBM" in one)
    assert waterfall == " HBM ░░░········ ░ the process, its parts unknown 35.0 of 140.0 GiB"


def places(told: str, names: Sequence[str]) -> list[int]:
    return [told.index(name) for name in names]


def test_nothing_moves_while_values_do() -> None:
    """Labels stand in the same cells for small values and for large ones, on the first page and on NUMA."""
    lines, tiers, numa = [], [], []
    for large in (False, True):
        seen = {
            "host.available": 1.153e12 if large else 9.1e9,
            "host.pressure": 12.3 if large else 0.0,
            "numa.0.headroom": 112.4e9 if large else 8.1e9,
        }
        verdict = healthy()
        node = replace(
            verdict.node,
            lines=tuple(replace(each, seen=seen.get(each.line, each.seen)) for each in verdict.node.lines),
        )
        share = 0.995 if large else 0.0
        latency = ServiceLatency(0.003 if large else 0.184, None, 1.2)
        server = replace(verdict.servers[0], service=replace(verdict.servers[0].service, ttft_seconds=latency))
        moved = 530e6 if large else 1.0
        verdict = replace(
            verdict,
            node=node,
            servers=(server,),
            tiers=TierShares(device_hit=share, host_hit=0.005, storage_hit=share, miss=share),
            transfers=replace(verdict.transfers, backup_bytes_per_second=moved, load_back_bytes_per_second=2e9),
        )
        lines.append(places(text(draw_host(verdict, 200, UNICODE)), [" of ", "avail", "pools", "psi", "free", "n1"]))
        tiers.append(
            places(text(draw_tiers(verdict, 200, UNICODE)), ["L1", "L2", "L3", "miss", "ttft", "p99", "L2>L1"])
        )
        numa.append(places(next(one for one in rows(NumaView(), verdict) if " node 0 " in one), ["free of", "pools"]))
    assert (lines[0], tiers[0], numa[0]) == (lines[1], tiers[1], numa[1])


def test_a_chart_without_room_for_its_span_keeps_its_title_whole() -> None:
    chart = Chart("GPU memory of the process", [1.0, 96.8], lambda value: f"{value:.1f} GiB")
    title, *_ = draw_chart(chart, 38, 6, UNICODE)
    assert text(title).rstrip() == " GPU memory of the process 96.8 GiB"
    title, *_ = draw_chart(chart, 48, 6, UNICODE)
    assert text(title).endswith(" last 1m")


def test_what_is_still_reported_of_a_dead_rank_is_marked() -> None:
    """Its server's page goes on saying what it held; its GPU is free."""
    judge = Reconciler()
    for second in range(3):
        sample = samples.healthy(second)
        verdict = judge.update(samples.without_rank(sample, 5) if second else sample)
    told = ("hbm.weights", "l2.used", "l2.total")
    verdict = replace(
        verdict,
        ranks=tuple(
            replace(
                rank,
                lines=(
                    *(each for each in rank.lines if each.line not in told),
                    *(Line(name, seen=9 << 30, status="ok", source="reported") for name in told),
                ),
            )
            for rank in verdict.ranks
        ),
    )
    grid = {text(row.line).split()[0]: text(row.line) for row in draw_grid(verdict, 120, UNICODE).rows}
    assert " ~100 " in grid["TP5"]
    assert "~" not in grid["TP4"]
    for rank, marked in (("TP5", True), ("TP4", False)):
        page_of_it = rows(RankDetail(RankTarget(samples.SERVER, rank)), verdict)
        weights = next(row for row in page_of_it if row.startswith(" hbm.weights"))
        assert ("~9.00 GiB" in weights) is marked
        assert any("held by the rank: its process is gone" in row for row in page_of_it) is marked


def test_a_reason_is_whole_in_budget() -> None:
    long = "part of hbm.rest; nothing tells it apart on this version, and no source of the driver does either"
    verdict = healthy()
    lines = tuple(replace(each, detail=long) if each.line == "hbm.torch" else each for each in verdict.ranks[0].lines)
    told = rows(BudgetView(), replace(verdict, ranks=(replace(verdict.ranks[0], lines=lines),)))
    first = next(place for place, row in enumerate(told) if row.startswith(" hbm.torch"))
    assert " ".join(" ".join(row[81:].strip() for row in told[first : first + 4]).split()).startswith(long)


def test_sources_of_evidence_stand_below_each_other() -> None:
    evidence = {"pid": 2906, "free_bytes": 1_234_567_890, "far_percent": 31.2}
    finding = Finding("RANK-DEAD", "critical", "rank", evidence=evidence, sources=dict.fromkeys(evidence, "measured"))
    told = [row for row in rows(FindingDetail(finding), healthy()) if row.endswith("measured")]
    assert len(told) == 3
    assert len({row.index("measured") for row in told}) == 1


def test_the_detail_of_an_effect_tells_its_cause_and_what_to_do_about_it() -> None:
    server = samples.SERVER
    gate = Finding("PLAN-HOST-GATE", "breach", "a pool was refused", server=server, advice="a smaller --hicache-size")
    other = replace(gate, server="127.0.0.1:30001", message="of another server")
    dead = Finding("RANK-DEAD", "critical", "gone", server=server, causes=("PLAN-HOST-GATE",), advice="read the log")
    told = rows(FindingDetail(dead), replace(healthy(), findings=(other, gate, dead)), 80)
    assert " caused by PLAN-HOST-GATE: a pool was refused" in told
    assert told.index(" a smaller --hicache-size") < told.index(" read the log")


@pytest.mark.parametrize("screen", [80, 120])
def test_what_if_is_whole(screen: int) -> None:
    told = rows(WhatIf("--hicache-size 140 --tp 4"), healthy(), screen)
    assert not any("…" in row for row in told)
    assert any(row.startswith(" L2 tokens a rank") and row.endswith("+390,912") for row in told), told
    assert "missing" in " ".join(told) or "left" in " ".join(told)


def test_all_of_it_is_a_hundred_and_never_less_than_nothing() -> None:
    verdict = replace(healthy(), tiers=TierShares(0.0, 0.0, 0.0, 1.0, "reported", 1000, 5.0))
    for told in (rows(RanksView(), verdict, 80), rows(TiersView(), verdict, 80)):
        assert any("miss  100 " in row for row in told), told
        assert not any("<0.0" in row for row in told)


FLAGS = "relaunch it with a smaller size, which you find with --hicache-size " * 4


def test_no_flag_is_cut_in_two() -> None:
    finding = Finding("NUMA-NODE-FULL", "critical", FLAGS, advice=FLAGS)
    verdict = replace(healthy(), findings=(finding,))
    for screen in range(60, 130):
        told = [*rows(FindingDetail(finding), verdict, screen), *rows(RanksView(), verdict, screen)]
        assert not any(row.rstrip().endswith("-") for row in told), screen


def test_what_is_cut_ends_with_a_whole_word() -> None:
    finding = Finding("NUMA-NODE-FULL", "critical", "full", advice=FLAGS)
    for room in range(2, 6):
        last = text(draw_findings(replace(healthy(), findings=(finding,)), 80, UNICODE, room=room)[-1].line)
        assert last.rstrip().endswith(" …")
        assert last.split()[-2] in FLAGS.split(), last


def test_a_long_path_is_whole_in_the_detail() -> None:
    path = "/kubepods.slice/kubepods-pod00000000_0000_4000_8000_000000000000.slice/cri-containerd-0123456789.scope"
    finding = Finding("HOST-OOM-KILL", "critical", "killed", evidence={"limit_path": path, "pid": 7})
    told = rows(FindingDetail(finding), healthy(), 80)
    first = next(place for place, row in enumerate(told) if row.startswith(" limit_path"))
    assert "".join(row[29:] for row in told[first : first + 3]).replace(" ", "").startswith(path)


def test_what_one_server_refuses_alike_is_one_row() -> None:
    refused = [
        SourceState(name, "error", server=samples.SERVER, code="refused", detail=f"GET /{name}: connection refused")
        for name in ("loads", "metrics", "server")
    ]
    others = (
        SourceState("nvml", "error", code="refused", detail="no driver"),
        replace(refused[0], name="router", code="timeout", detail="no answer"),
        replace(refused[0], server="127.0.0.1:30001", detail="the other server: connection refused"),
    )
    verdict = replace(healthy(), sample=replace(samples.healthy(), sources=(*refused, *others)))
    told = [text(row.line).strip() for row in draw_findings(verdict, 120, UNICODE)]
    failing = [row for row in told if row.startswith("○ ") and "METRICS" not in row]
    assert [row.split("  ")[0] for row in failing] == ["○ loads +2", "○ nvml", "○ router", "○ loads"]


def test_why_layers_are_not_split_is_whole_and_what_has_no_room_is_not_cut() -> None:
    launch = "--disaggregation-mode prefill --tp 8 --enable-dsa-cache-layer-split"
    for flags, is_on in ((launch, False), (f"{launch} --enable-prefill-cp --cp-strategy interleave", True)):
        plan = compute_plan(parse_launch(flags))
        assert plan.layer_split.active == is_on
        verdict = healthy()
        verdict = replace(verdict, servers=(replace(verdict.servers[0], plan=plan),))
        told = rows(LayersView(), verdict, 80)
        about = next(row for row in told if "78 layers" in row)
        assert about.rstrip().endswith("scratch …" if is_on else "LayerSplit off"), about
        whole = " ".join(" ".join(told).split())
        assert all(reason in whole for reason in plan.layer_split.reasons)
        assert is_on or plan.layer_split.reasons
