"""Tiers, PD and Service: what follows from two pages and the log is on the screen, at any width, uncoloured."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ranktop.clock import time_of_day
from ranktop.finding import Finding
from ranktop.reconcile import Reconciler, Verdict
from ranktop.reconcile.verdict import (
    Acceptance,
    Handoff,
    Load,
    Prefetch,
    RankTransfers,
    ServerVerdict,
    ServiceLatency,
    Traffic,
)
from support import samples
from tui.draw.glyphs import UNICODE
from tui.draw.spans import width
from tui.trails import Trails
from tui.views.pd import PdView
from tui.views.service import ServiceView
from tui.views.tiers import TiersView
from tui.views.view import Frame, Page, View

LEDGER = Finding(
    "L2-WHY",
    "warn",
    "no hit in L2",
    evidence={"evicted_tokens": 61440.0, "written_tokens": 0.0, "dropped_tokens": 0.0, "lost_tokens": 61440.0},
)
READS = (
    Prefetch("8f1d0c", samples.START, "success", 8, 6400, 3200, 1600, 128),
    Prefetch("77aa01", samples.START - 5, "host_full", 1),
)


def verdict(**told: object) -> Verdict:
    """The healthy node, its one server having this to tell."""
    found = Reconciler().update(samples.healthy())
    return replace(found, servers=(replace(found.servers[0], **told),))


def prefill() -> Verdict:
    waits = ServiceLatency(p50=46.0, p95=1500.0)
    handoff = Handoff(
        "prefill",
        {"num_prefill_bootstrap_queue_reqs": 3, "num_queue_reqs": 1},
        transfer_milliseconds=waits,
        bootstrap_failures=2,
        bytes_per_second=12.3e9,
        ranks={"0/0/3": RankTransfers(46.0, 1.25)},
    )
    return verdict(role="prefill", handoff=handoff)


def tiers() -> Verdict:
    traffic = Traffic(
        backup_tokens_per_second=14_707.2,
        evicted_tokens_per_second=0.0,
        dropped_tokens_per_second={"host_pressure/kv": 204.8},
        backup_copy_bytes_per_second=12.5e9,
    )
    return replace(verdict(traffic=traffic, prefetches=READS), findings=(LEDGER,))


def service() -> Verdict:
    found = verdict(load=Load(1.2, 24_600.0, 0.12, 1), acceptance=Acceptance(2.81, 0.603))
    return replace(found, routers={"http://router:29000": ServiceLatency(0.9, 2.0, 3.5)})


def draw(view: View, found: Verdict, cells: int) -> Page:
    trails = Trails()
    trails.push(found)
    return view.draw(Frame(found, cells, UNICODE, trails))


def text(page: Page) -> list[str]:
    return ["".join(span.text for span in row.line).rstrip() for row in page.rows]


def row(page: Page, begins: str) -> str:
    return next(" ".join(each.split()) for each in text(page) if each.strip().startswith(begins))


def read_at(read: Prefetch) -> str:
    return time_of_day(read.at_unix_seconds)


VIEWS = [(TiersView(), tiers()), (PdView(), prefill()), (ServiceView(), service())]


@pytest.mark.parametrize("cells", [20, 80, 120, 200])
@pytest.mark.parametrize(("view", "found"), VIEWS, ids=["tiers", "pd", "service"])
def test_no_line_is_wider_than_the_screen(view: View, found: Verdict, cells: int) -> None:
    assert max(width(each.line) for each in draw(view, found, cells).rows) <= cells


@pytest.mark.parametrize(("view", "found"), VIEWS, ids=["tiers", "pd", "service"])
def test_what_is_normal_has_no_colour(view: View, found: Verdict) -> None:
    calm = replace(found, findings=())
    roles = {span.role for each in draw(view, calm, 120).rows for span in each.line}
    assert roles <= {"text", "strong", "muted", "faint", "accent", "info", "ok", "bar"}


def test_tokens_between_the_tiers() -> None:
    page = draw(TiersView(), tiers(), 80)
    assert "L1>L2 backup 14,707 12.5 GB/s" in [" ".join(each.split()) for each in text(page)]
    assert row(page, "evicted from L1") == "evicted from L1 0"
    assert row(page, "dropped:") == "dropped: host_pressure/kv 205"
    assert row(page, "L3>L2 prefetched") == "L3>L2 prefetched – no L3 backend"


def test_the_ledger_of_the_verdict_on_l2() -> None:
    page = draw(TiersView(), tiers(), 80)
    assert row(page, "tokens") == "tokens evicted 61,440 = written 0 + dropped 0 + lost 61,440"
    assert not any("lost" in each for each in text(draw(TiersView(), verdict(), 80)))


def test_reads_from_storage() -> None:
    page = draw(TiersView(), tiers(), 120)
    assert row(page, read_at(READS[0])).split()[1:] == ["8f1d0c", "6,400", "3,200", "1,600", "128", "8", "success"]
    assert row(page, read_at(READS[1])).split()[1:] == ["77aa01", "–", "–", "–", "–", "1", "host_full"]
    assert not any("requested" in each for each in text(draw(TiersView(), verdict(), 120)))


@pytest.mark.parametrize("cells", [80, 120])
def test_the_hand_off_of_a_prefill_server(cells: int) -> None:
    page = draw(PdView(), prefill(), cells)
    assert row(page, samples.SERVER) == f"{samples.SERVER} prefill bootstrap 3 waiting 1"
    assert row(page, "latency") == "latency p50 p95 p99 moved 12.3 GB/s"
    assert row(page, "bootstrap") == "bootstrap – – – boot/transfer failed 2 / 0"
    assert row(page, "transfer") == "transfer 46 ms 1.5 s – retries 0"
    assert "46 ms 1.25 GiB/s" in row(page, "TP3")
    assert row(page, "TP4").endswith("– –")
    assert [each.strip() for each in text(page)].count("– no prefill or decode role") == 1, (
        "a reason is told once, not once a rank"
    )


@pytest.mark.parametrize("cells", [80, 120])
def test_a_prefill_server_that_sends_nothing_says_what_its_dashes_mean(cells: int) -> None:
    note = "– latency, moved, mean, speed: no transfer ended since the metrics page before"
    idle = verdict(role="prefill", handoff=Handoff("prefill", {"num_queue_reqs": 0}))
    assert [each.strip() for each in text(draw(PdView(), idle, cells))].count(note) == 1
    assert note not in [each.strip() for each in text(draw(PdView(), prefill(), cells))]


@pytest.mark.parametrize("cells", [80, 120])
def test_why_nothing_is_accepted_is_whole(cells: int) -> None:
    assert any(
        each.endswith("accepted a step     – (spec off)") for each in text(draw(ServiceView(), verdict(), cells))
    )


@pytest.mark.parametrize("cells", [80, 120])
def test_what_a_server_takes_on(cells: int) -> None:
    page = draw(ServiceView(), service(), cells)
    assert row(page, "latency") == "latency p50 p95 p99 requests 1.2/s"
    assert row(page, "first token").endswith("prompt 24,600 tok/s")
    assert row(page, "between tokens").endswith("mean in queue 120 ms")
    assert row(page, "whole request").endswith("retracted / aborted 1 / –")
    assert row(page, "accepted a step") == "accepted a step 2.81 tok (60 %)"
    assert row(page, "http://router") == "http://router:29000 router: from admission"
    assert "whole request 900 ms 2.0 s 3.5 s" in [" ".join(each.split()) for each in text(page)]


def test_a_server_without_a_page_tells_nothing() -> None:
    bare = ServerVerdict("a:1", None, None, None, None, "decode", 0)
    found = replace(verdict(), servers=(bare,), ranks=())
    assert row(draw(ServiceView(), found, 120), "first token") == "first token – – – prompt –"
    assert row(draw(PdView(), found, 120), "bootstrap").endswith("boot/transfer failed –")
