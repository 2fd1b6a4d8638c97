"""6 PD: prefill and decode: what waits, how long a hand-off takes, who is registered, who transfers, who fails."""

from __future__ import annotations

from functools import partial

from ranktop.reconcile.logged import tag_of
from ranktop.reconcile.ranklabels import labels_of
from ranktop.reconcile.verdict import Handoff, Line, RankTransfers, RankVerdict, ServerVerdict
from tui.draw import numbers
from tui.draw.beside import beside
from tui.draw.spans import Span, TextLine, fit, line, plain
from tui.draw.table import Cell, Col, Table
from tui.views import latencies
from tui.views.related import related
from tui.views.values import seen_cell
from tui.views.view import Frame, Page, RankTarget, Row

_COLUMNS = (
    Col("rank", 20, align_left=True),
    Col("registered", 10),
    Col("transfers", 9),
    Col("failures", 8),
    Col("mean", 8),
    Col("speed", 11, weight=1),
    Col("", 0, grow=True),
)
_QUEUES = {
    "num_prefill_bootstrap_queue_reqs": "bootstrap",
    "num_prefill_inflight_queue_reqs": "in flight",
    "num_decode_prealloc_queue_reqs": "prealloc",
    "num_decode_transfer_queue_reqs": "transfer",
    "num_decode_host_receive_queue_reqs": "host receive",
    "num_queue_reqs": "waiting",
}
_MILLISECOND = 1e-3


class PdView:
    """A block a prefill or decode server on this node, with a row a rank."""

    key = "6"
    name = "pd"

    def draw(self, frame: Frame) -> Page:
        rows = [*related(frame, "PD-"), Row(line(" " * frame.width))]
        servers = [server for server in frame.verdict.servers if server.role in ("prefill", "decode")]
        for server in servers:
            rows += [Row(fit(text_line, frame.width, frame.glyphs.more)) for text_line in _server(server, frame)]
            rows += [*_ranks(server, frame), Row(line(" " * frame.width))]
        if not servers:
            text = "  no prefill or decode server on this node: every server here is unified"
            rows.append(Row(fit(line(Span(text, "muted")), frame.width, frame.glyphs.more)))
        return Page((), tuple(rows))


def _server(server: ServerVerdict, frame: Frame) -> list[TextLine]:
    handoff, missing = server.handoff, frame.glyphs.missing
    head: list[Span | str] = [" ", Span(plain(server.id), "strong"), Span(f"   {server.role}", "muted")]
    for name, count in handoff.queues.items():
        head += [Span(f"   {_QUEUES[name]} ", "muted"), str(count)]
    told = {"bootstrap": handoff.bootstrap_milliseconds, "transfer": handoff.transfer_milliseconds}
    table = latencies.latency_lines(told, missing, _MILLISECOND)
    beside_it = max(0, frame.width - latencies.WIDTH - 2)
    return [line(*head), *beside([(table, latencies.WIDTH), (_counts(handoff, missing), beside_it)], frame.glyphs.more)]


def _counts(handoff: Handoff, missing: str) -> list[TextLine]:
    """Failures are 0 before the first, as their counters appear with it."""
    failures = f"{handoff.bootstrap_failures or 0} / {handoff.transfer_failures or 0}"
    facts = {
        "moved": numbers.rate(handoff.bytes_per_second, missing),
        "boot/transfer failed": missing if handoff.role is None else failures,
        "retries": missing if handoff.role is None else str(handoff.retries or 0),
    }
    return [line(" ", Span(f"{name:<22}", "muted"), text) for name, text in facts.items()]


def _ranks(server: ServerVerdict, frame: Frame) -> list[Row]:
    ranks = [rank for rank in frame.verdict.ranks if rank.server == server.id]
    shown = Table(_COLUMNS, frame.width, frame.glyphs.more)
    why = dict.fromkeys(each.detail for rank in ranks for each in _shown(rank) if each.seen is None and each.detail)
    if server.handoff.role is not None and server.handoff.transfer_milliseconds.p50 is None:
        why["latency, moved, mean, speed: no transfer ended since the metrics page before"] = None
    notes = (line(Span(f" {frame.glyphs.missing} {plain(reason)}", "muted")) for reason in why)
    return [
        Row(shown.header),
        *(Row(partial(_line, rank, server, frame, shown), RankTarget(rank.server, rank.rank)) for rank in ranks),
        *(Row(fit(note, frame.width, frame.glyphs.more)) for note in notes),
    ]


def _shown(rank: RankVerdict) -> tuple[Line, ...]:
    return tuple(rank.line(name) for name in ("pd.registered", "pd.transfers", "pd.failures"))


def _line(rank: RankVerdict, server: ServerVerdict, frame: Frame, shown: Table) -> TextLine:
    return shown.row(_cells(rank, server, frame))


def _cells(rank: RankVerdict, server: ServerVerdict, frame: Frame) -> list[Cell]:
    missing = frame.glyphs.missing
    own = server.handoff.ranks.get(str(labels_of(tag_of(rank.rank))), RankTransfers())
    mean, speed = own.mean_milliseconds, own.mean_gib_per_second
    return [
        Span(rank.rank, "strong"),
        *(seen_cell(each, missing) for each in _shown(rank)),
        numbers.seconds(None if mean is None else mean * _MILLISECOND, missing),
        missing if speed is None else f"{speed:.2f} GiB/s",
        "",
    ]
