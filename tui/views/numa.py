"""4 NUMA: which node every rank's pool pages lie on, and how much room each node has."""

from __future__ import annotations

from functools import partial

from ranktop.reconcile.gone import gone_ranks
from ranktop.reconcile.verdict import RankVerdict
from ranktop.sample import NumaNode
from tui.draw import numbers
from tui.draw.glyphs import bar
from tui.draw.spans import Span, TextLine, fit, left, line, plain, right
from tui.views.columns import tag_width
from tui.views.related import by_server, related
from tui.views.view import Frame, Page, RankTarget, Row

_CELL = 9


class NumaView:
    """Rank by node, in percent of the sampled pages."""

    key = "4"
    name = "numa"

    def draw(self, frame: Frame) -> Page:
        nodes = frame.verdict.sample.numa or ()
        rows = [*related(frame, "NUMA-", "HOST-HEADROOM"), Row(line(" " * frame.width))]
        if not nodes:
            rows.append(Row(line(Span("  no NUMA node is readable here", "muted"))))
            return Page((), tuple(rows))
        rows += [Row(_node(node, frame)) for node in nodes]
        wide = tag_width((rank.rank for rank in frame.verdict.ranks), 10)
        rows.append(Row(line(" " * frame.width)))
        rows.append(Row(_header(nodes, wide, frame)))
        gone = gone_ranks(frame.verdict)
        for heading, ranks in by_server(frame):
            rows += heading
            for rank in ranks:
                target = RankTarget(rank.server, rank.rank)
                rows.append(Row(partial(_rank, rank, target in gone, nodes, wide, frame), target))
        return Page((), tuple(rows))


def _node(node: NumaNode, frame: Frame) -> TextLine:
    missing = frame.glyphs.missing
    headroom = frame.verdict.node.line(f"numa.{node.node}.headroom").seen
    pools = frame.verdict.node.line(f"numa.{node.node}.pools").seen
    share = 1 - headroom / node.total_bytes if headroom is not None and node.total_bytes else None
    filled, rest = bar(frame.glyphs, share, max(10, min(40, frame.width - 70)))
    note = " (simulated)" if node.source == "simulated" else ""
    spans = line(
        Span(f" node {node.node:<3}", "strong"),
        Span(filled, "bar"),
        Span(rest, "faint"),
        f" {right(numbers.size(headroom, missing), 7)} free of {numbers.size(node.total_bytes, missing)}{note}",
        Span(f"   pools {right(numbers.size(pools, missing), 7)}", "muted"),
        Span(f"   cpus {node.cpus}" if node.cpus else "", "muted"),
    )
    return fit(spans, frame.width, frame.glyphs.more)


def _header(nodes: tuple[NumaNode, ...], wide: int, frame: Frame) -> TextLine:
    names = "".join(right(f"node {node.node}", _CELL) for node in nodes)
    return fit(
        line(Span(f" {'rank':<{wide}}  gpu  gpu node{names}   local %   pages   cpus allowed", "muted")),
        frame.width,
        frame.glyphs.more,
    )


def _rank(rank: RankVerdict, is_gone: bool, nodes: tuple[NumaNode, ...], wide: int, frame: Frame) -> TextLine:
    missing = frame.glyphs.missing
    placements = frame.verdict.sample.placements.get(rank.pid, ()) if rank.pid is not None else ()
    sampled = sum(placement.sampled_pages - placement.absent_pages for placement in placements)
    spans: list[Span | str] = [
        " ",
        Span(left(rank.rank, wide, frame.glyphs.more), "strong"),
        right(missing if rank.gpu is None else str(rank.gpu), 5),
        right(missing if rank.numa is None else str(rank.numa), 10),
    ]
    for node in nodes:
        pages = sum(count for placement in placements for where, count in placement.pages_by_node if where == node.node)
        share = 100 * pages / sampled if sampled else None
        text = missing if share is None else f"{share:.0f} %"
        away = share is not None and share > 5 and rank.numa is not None and node.node != rank.numa
        spans.append(Span(right(text, _CELL), "warn" if away else "text" if share else "muted"))
    local = rank.line("numa.local")
    spans.append(Span(right(missing if local.seen is None else f"{local.seen:.1f}", 10), "text"))
    spans.append(Span(right(str(sampled) if sampled else missing, 8), "muted"))
    if is_gone:
        spans.append(Span("   no process", "warn"))
    else:
        spans.append(Span(f"   {plain(_cpus_allowed(rank, frame))}", "muted"))
    return fit(line(*spans), frame.width, frame.glyphs.more)


def _cpus_allowed(rank: RankVerdict, frame: Frame) -> str:
    processes = frame.verdict.sample.processes
    known = (process.cpus_allowed for process in processes.ranks if process.pid == rank.pid) if processes else iter(())
    return next(known, None) or frame.glyphs.missing
