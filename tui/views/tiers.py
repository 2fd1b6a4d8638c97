"""3 Tiers: where prefill tokens came from, what moved, how full L1 and L2 are."""

from __future__ import annotations

from functools import partial

from ranktop.reconcile.gone import gone_ranks
from ranktop.reconcile.verdict import RankVerdict, TierShares
from tui.draw import numbers
from tui.draw.chart import Chart
from tui.draw.chartpairs import chart_pairs
from tui.draw.glyphs import bar
from tui.draw.spans import Span, TextLine, fit, left, line, plain, right
from tui.views.columns import tag_width
from tui.views.related import by_server, related
from tui.views.tier_tokens import ledger_lines, read_lines, traffic_lines
from tui.views.view import Frame, Page, Row

_CHART_HEIGHT = 7


class TiersView:
    """Shares and transfers over the last quarter of an hour, tokens a second, reads from storage, occupancy."""

    key = "3"
    name = "tiers"

    def draw(self, frame: Frame) -> Page:
        rows = [*related(frame, "L2-", "L3-", "TIER-", "SPEC-"), _blank(frame)]
        rows += [Row(text_line) for text_line in (*_shares(frame), *ledger_lines(frame))]
        rows.append(_blank(frame))
        rows += [Row(text_line) for text_line in _charts(frame)]
        rows.append(_blank(frame))
        rows += [Row(text_line) for text_line in (*traffic_lines(frame), *read_lines(frame))]
        rows.append(_blank(frame))
        rows += _occupancy(frame)
        return Page((), tuple(rows))


def _blank(frame: Frame) -> Row:
    return Row(line(" " * frame.width))


def _shares(frame: Frame) -> list[TextLine]:
    """One bar over all prefill tokens of the window."""
    tiers, missing = frame.verdict.tiers, frame.glyphs.missing
    cells = max(20, min(80, frame.width - 46))
    parts = (("L1", tiers.device_hit, "accent"), ("L2", tiers.host_hit, "info"), ("L3", tiers.storage_hit, "ok"))
    spans: list[Span | str] = [Span(" hits   ", "muted")]
    used = 0
    for fill, (_, share, role) in zip(frame.glyphs.parts, parts, strict=False):
        taken = round((share or 0.0) * cells)
        spans.append(Span(fill * taken, role))
        used += taken
    spans += [Span(frame.glyphs.empty * max(0, cells - used), "faint"), Span(f"  {_window(tiers)}", "muted")]
    legend: list[Span | str] = [" " * 8]
    fills = (*frame.glyphs.parts[: len(parts)], frame.glyphs.empty)
    for fill, (name, share, role) in zip(fills, (*parts, ("miss", tiers.miss, "muted")), strict=True):
        legend += [Span(f"{fill} {name} ", role), f"{right(numbers.percent(share, missing, 1), 4)} %  "]
    return [fit(line(*spans), frame.width, frame.glyphs.more), fit(line(*legend), frame.width, frame.glyphs.more)]


def _window(tiers: TierShares) -> str:
    if tiers.window_tokens is None:
        return plain(tiers.detail)
    seconds = "since the start" if tiers.window_seconds is None else f"in {tiers.window_seconds:.0f} s"
    return f"of {tiers.window_tokens:,} tokens {seconds}"


def _charts(frame: Frame) -> tuple[TextLine, ...]:
    trails = frame.trails

    def rate(value: float) -> str:
        return numbers.rate(value, "")

    def share(value: float) -> str:
        return f"{100 * value:.0f} %"

    charts = [
        Chart("L1 hits", trails.node("tiers.device_hit"), share, top=1.0),
        Chart("L2 hits", trails.node("tiers.host_hit"), share, top=1.0),
        Chart("L1>L2 backup", trails.node("transfers.backup"), rate),
        Chart("L2>L1 load-back", trails.node("transfers.load_back"), rate),
    ]
    return chart_pairs(charts, frame.width, _CHART_HEIGHT, frame.glyphs)


def _occupancy(frame: Frame) -> list[Row]:
    """A row a rank that reports: used, evictable and free of L1, used of L2."""
    wide = tag_width((rank.rank for rank in frame.verdict.ranks), 10)
    head = f" {'rank':<{wide}}      L1 used  evictable       free      L2 used"
    rows = [Row(fit(line(Span(head, "muted")), frame.width, frame.glyphs.more))]
    cells = max(8, min(24, (frame.width - wide - 50) // 2))
    gone = gone_ranks(frame.verdict)
    for heading, ranks in by_server(frame):
        own = [rank for rank in ranks if rank.line("l1.used").seen is not None and not rank.line("l1.used").group]
        rows += heading if own else ()
        rows += [
            Row(partial(_occupancy_row, rank, (rank.server, rank.rank) in gone, wide, cells, frame)) for rank in own
        ]
    if len(rows) == 1:
        rows.append(Row(fit(line(Span("  no rank reports its tokens", "muted")), frame.width, frame.glyphs.more)))
    return rows


def _occupancy_row(rank: RankVerdict, is_gone: bool, wide: int, cells: int, frame: Frame) -> TextLine:
    missing = frame.glyphs.missing

    def tokens(name: str) -> str:
        seen = rank.line(name).seen
        return missing if seen is None else f"{seen:,.0f}"

    total, used = rank.line("l2.total").seen, rank.line("l2.used").seen
    filled, rest = bar(frame.glyphs, used / total if used is not None and total else None, cells)
    row = line(
        " ",
        Span(left(rank.rank, wide, frame.glyphs.more), "strong"),
        right(tokens("l1.used"), 13),
        right(tokens("l1.evictable"), 11),
        right(tokens("l1.available"), 11),
        right(tokens("l2.used"), 13),
        " ",
        Span(filled, "bar"),
        Span(rest, "faint"),
        Span(f" of {tokens('l2.total')}", "muted"),
        Span("  no process" if is_gone else "", "warn"),
    )
    return fit(row, frame.width, frame.glyphs.more)
