"""A rank's HBM lines: its own report, else its log, else its group's report."""

from __future__ import annotations

from msgspec.structs import replace

from ranktop.plan.plan import GIB
from ranktop.reconcile.verdict import Line
from ranktop.sample import Event, Sample, ServerInfo
from support import changes, samples
from support.changes import event, events, judge, with_graphs

LOGGED = [
    event("weights_end", 1, rank="TP3", used_gib=91.51),
    event("weights_end", 2, rank="TP3", used_gib=1.5),
    event("l1_pool", 3, rank="TP3", tokens=432_000, size_gib=24.73),
    event("graph_end", 4, rank="TP3", used_gib=1.9),
    event("graph_end", 5, rank="TP3", used_gib=0.35),
]


def told(sample: Sample, *said: Event) -> dict[str, Line]:
    rank = judge([events(sample, *said)]).ranks[3]
    return {line.line: line for line in rank.lines}


def silent(sample: Sample) -> Sample:
    return replace(sample, metrics={}, infos={})


def test_the_log_tells_what_no_page_does() -> None:
    lines = told(silent(samples.healthy(6)), *LOGGED)
    assert (lines["hbm.weights"].seen, lines["hbm.weights"].source) == (round(93.01 * GIB), "logged")
    assert lines["hbm.kv"].seen == round(24.73 * GIB)
    assert lines["hbm.graphs"].seen == round(2.25 * GIB), "every phase that was captured"
    assert lines["hbm.rest"].seen == 137 * 10**9 - sum(round(size * GIB) for size in (93.01, 24.73, 2.25))


def test_a_rank_without_lines_of_its_own_is_unknown() -> None:
    lines = told(silent(samples.healthy(6)), *(replace(said, rank="TP0") for said in LOGGED))
    assert {lines[name].status for name in ("hbm.weights", "hbm.kv", "hbm.graphs", "hbm.rest")} == {"unknown"}
    assert lines["hbm.weights"].detail


def test_its_own_report_comes_before_its_log() -> None:
    lines = told(with_graphs(samples.healthy(6)), *LOGGED)
    assert (lines["hbm.weights"].seen, lines["hbm.weights"].source) == (round(91.4 * GIB), "reported")


def test_its_own_log_comes_before_its_groups_report() -> None:
    info = ServerInfo(
        samples.SERVER, version="0.5.18", is_ready=True, weight_gib=91.4, kv_cache_gib=24.7, graph_gib=1.9
    )
    grouped = replace(samples.healthy(6), metrics={}, infos={samples.SERVER: info})
    assert told(grouped)["hbm.weights"].group
    own = told(grouped, *LOGGED)["hbm.weights"]
    assert (own.source, own.group) == ("logged", False)


def test_a_lost_gpu_says_why() -> None:
    line = told(
        changes.gpu(samples.healthy(1), 3, state="lost", detail="GPU is lost", total_bytes=None, free_bytes=None)
    )
    assert (line["hbm.total"].status, line["hbm.total"].detail) == ("unknown", "GPU is lost")
