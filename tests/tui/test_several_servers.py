"""Two servers on one node have the same rank tags: every line that names a rank says of which server it is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ranktop.finding import Finding
from ranktop.reconcile import Reconciler, Verdict
from ranktop.reconcile.headline import headline
from ranktop.reconcile.verdict import Line
from support import samples
from support.pages import rows, text
from tui.draw.glyphs import UNICODE
from tui.draw.title import draw_headline
from tui.views.numa import NumaView
from tui.views.service import ServiceView
from tui.views.sources import SourcesView
from tui.views.tiers import TiersView

OTHER = "127.0.0.1:30001"


def verdict(*findings: Finding) -> Verdict:
    """The healthy node with its server a second time, at another address."""
    found = Reconciler().update(samples.healthy())
    server = found.servers[0]
    told = Line("l1.used", seen=64, unit="tokens", status="ok", source="reported")
    ranks = tuple(replace(rank, lines=(*rank.lines, told)) for rank in found.ranks)
    sources = found.sample.sources
    doubled = replace(
        found,
        servers=(server, replace(server, id=OTHER)),
        ranks=(*ranks, *(replace(rank, server=OTHER) for rank in ranks)),
        sample=replace(
            found.sample,
            sources=(*sources, *(replace(each, server=OTHER) for each in sources if each.server is not None)),
        ),
        findings=findings,
    )
    said, severity = headline(doubled.sample, doubled.servers, findings, None)
    return replace(doubled, headline=said, headline_severity=severity)


def dead(server: str) -> Finding:
    return Finding("RANK-DEAD", "critical", "pid 4247 is gone", server=server, rank="TP5", ranks=("TP5",))


@pytest.mark.parametrize("width", [24, 80, 120])
def test_the_sentence_names_the_server(width: int) -> None:
    assert text(draw_headline(verdict(dead(OTHER)), width, UNICODE)).startswith(" ✖ :30001 TP5: pid 4247")
    alone = Reconciler().update(samples.healthy())
    said, _ = headline(alone.sample, alone.servers, (dead(samples.SERVER),), None)
    assert said == "TP5: pid 4247 is gone", "one server needs no name"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("view", [NumaView(), TiersView()], ids=["numa", "tiers"])
def test_ranks_stand_below_their_server(view: NumaView | TiersView, width: int) -> None:
    told = rows(view, verdict(), width)
    names = [row.split()[0] for row in told if row.startswith((" TP", f" {samples.SERVER}", f" {OTHER}"))]
    tags = [f"TP{tp}" for tp in range(8)]
    assert names[-18:] == [samples.SERVER, *tags, OTHER, *tags]
    alone = rows(view, Reconciler().update(samples.healthy()), width)
    assert sum(samples.SERVER in row for row in alone) == (view.name == "tiers"), "the table of its traffic"


def test_a_finding_of_a_view_names_its_server() -> None:
    found = Finding("METRICS-DEDUP", "info", "counters are one series", server=OTHER)
    assert " ○ METRICS-DEDUP :30001 counters are one series" in rows(ServiceView(), verdict(found))


@pytest.mark.parametrize("width", [78, 79, 80, 120])
def test_every_source_names_its_server(width: int) -> None:
    metrics = [row for row in rows(SourcesView(), verdict(), width) if row.startswith(" metrics")]
    assert [server in row for server, row in zip((samples.SERVER, OTHER), metrics, strict=True)] == [True, True]
