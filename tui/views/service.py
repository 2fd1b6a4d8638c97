"""7 Service: how long users wait, and how much is served."""

from __future__ import annotations

from ranktop.reconcile.verdict import ServerVerdict
from tui.draw import numbers
from tui.draw.beside import beside
from tui.draw.chart import Chart
from tui.draw.chartpairs import chart_pairs
from tui.draw.spans import Span, TextLine, fit, line, plain
from tui.views import latencies
from tui.views.related import related
from tui.views.view import Frame, Page, Row

_CHART_HEIGHTS = (5, 8)
"""The lowest and the highest: two rows of charts of one server are on one screen where that can be."""
_OTHER_ROWS = 9


class ServiceView:
    """Latencies over the window between the last two pages, per server and router; requests; throughput."""

    key = "7"
    name = "service"

    def draw(self, frame: Frame) -> Page:
        blank = line(" " * frame.width)
        lines: list[TextLine] = [blank]
        for server in frame.verdict.servers:
            lines += [*_server(server, frame), blank]
        if not frame.verdict.servers:
            lines.append(line(Span("  no server yet", "muted")))
        for url, told in frame.verdict.routers.items():
            lines.append(line(" ", Span(plain(url), "strong"), Span("   router: from admission", "muted")))
            lines += [*latencies.latency_lines({"whole request": told}, frame.glyphs.missing), blank]
        rows = (Row(fit(text_line, frame.width, frame.glyphs.more)) for text_line in lines)
        return Page((), (*related(frame, "SERVER-", "TIER-TTFT", "SPEC-", "METRICS-"), *rows))


def _server(server: ServerVerdict, frame: Frame) -> list[TextLine]:
    service, missing = server.service, frame.glyphs.missing
    counts = (("running", service.running), ("queued", service.queued), ("http active", service.http_active))
    spans: list[Span | str] = [" ", Span(plain(server.id), "strong")]
    spans += [Span("   output ", "muted"), _amount(service.tokens_per_second, " tok/s", missing)]
    for name, count in counts:
        spans += [Span(f"   {name} ", "muted"), _amount(count, "", missing)]
    told = {
        "first token": service.ttft_seconds,
        "between tokens": service.inter_token_seconds,
        "whole request": service.e2e_seconds,
    }
    table = latencies.latency_lines(told, missing)
    charts = (
        Chart("ttft p50", frame.trails.values(server.id, "", "ttft.p50"), _seconds),
        Chart("ttft p99", frame.trails.values(server.id, "", "ttft.p99"), _seconds),
        Chart("between tokens p50", frame.trails.values(server.id, "", "inter_token.p50"), _seconds),
        Chart("output tok/s", frame.trails.values(server.id, "", "throughput"), lambda value: f"{value:,.0f}"),
    )
    beside_it = max(0, frame.width - latencies.WIDTH - 2)
    facts = beside([(table, latencies.WIDTH), (_load(server, missing), beside_it)], frame.glyphs.more)
    return [line(*spans), *facts, *chart_pairs(charts, frame.width, _chart_height(frame), frame.glyphs)]


def _chart_height(frame: Frame) -> int:
    lowest, highest = _CHART_HEIGHTS
    return highest if frame.height is None else max(lowest, min(highest, (frame.height - _OTHER_ROWS) // 2))


def _load(server: ServerVerdict, missing: str) -> list[TextLine]:
    """What the server took on in the window, beside how long it took."""
    load = server.load
    requests = missing if load.requests_per_second is None else f"{load.requests_per_second:,.1f}/s"
    failed = f"{_amount(load.retracted_requests, '', missing)} / {_amount(load.aborted_requests, '', missing)}"
    facts = {
        "requests": requests,
        "prompt": _amount(load.prompt_tokens_per_second, " tok/s", missing),
        "mean in queue": numbers.seconds(load.mean_queue_seconds, missing),
        "retracted / aborted": failed,
        "accepted a step": _accepted(server, missing),
    }
    return [line(" ", Span(f"{name:<20}", "muted"), text) for name, text in facts.items()]


def _accepted(server: ServerVerdict, missing: str) -> str:
    told = server.acceptance
    if told.length_tokens is None:
        is_off = server.plan is not None and not server.plan.launch.speculative
        return f"{missing} (spec off)" if is_off else missing
    ratio = "" if told.ratio is None else f" ({numbers.percent(told.ratio, missing)} %)"
    return f"{told.length_tokens:.2f} tok{ratio}"


def _amount(value: float | None, unit: str, missing: str) -> str:
    return missing if value is None else f"{value:,.0f}{unit}"


def _seconds(value: float) -> str:
    return numbers.seconds(value, "")
