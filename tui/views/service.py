"""7 Service: how long users wait, and how much is served."""

from __future__ import annotations

from ranktop.reconcile.verdict import ServerVerdict, ServiceLatency
from tui.draw import numbers
from tui.draw.beside import beside
from tui.draw.chart import Chart, draw_chart
from tui.draw.spans import Span, TextLine, fit, left, line, plain, right
from tui.views.related import related
from tui.views.view import Frame, Page, Row

_CHART_HEIGHT = 8


class ServiceView:
    """Latencies over the window between the last two pages, per server; requests; throughput."""

    key = "7"
    name = "service"

    def draw(self, frame: Frame) -> Page:
        rows = [*related(frame, "SERVER-", "TIER-TTFT", "SPEC-", "METRICS-"), Row(line(" " * frame.width))]
        for server in frame.verdict.servers:
            rows += [Row(fit(text_line, frame.width, frame.glyphs.more)) for text_line in _server(server, frame)]
            rows.append(Row(line(" " * frame.width)))
        if not frame.verdict.servers:
            rows.append(Row(line(Span("  no server yet", "muted"))))
        return Page((), tuple(rows))


def _server(server: ServerVerdict, frame: Frame) -> list[TextLine]:
    service, missing = server.service, frame.glyphs.missing
    throughput = missing if service.tokens_per_second is None else f"{service.tokens_per_second:,.0f} tok/s"
    counts = (("running", service.running), ("queued", service.queued), ("http", service.http_active))
    spans: list[Span | str] = [" ", Span(plain(server.id), "strong"), Span("   output ", "muted"), throughput]
    for name, count in counts:
        spans += [Span(f"   {name} ", "muted"), missing if count is None else str(count)]
    lines = [
        line(*spans),
        line(Span(f" {left('latency', 14)}{right('p50', 10)}{right('p95', 10)}{right('p99', 10)}", "muted")),
    ]
    for name, latency in (
        ("first token", service.ttft_seconds),
        ("between tokens", service.inter_token_seconds),
        ("whole request", service.e2e_seconds),
    ):
        lines.append(_latency(name, latency, missing))
    width = (frame.width - 3) // 2
    charts = (
        Chart("ttft p50", frame.trails.values(server.id, "", "ttft.p50"), _seconds),
        Chart("ttft p99", frame.trails.values(server.id, "", "ttft.p99"), _seconds),
        Chart("between tokens p50", frame.trails.values(server.id, "", "inter_token.p50"), _seconds),
        Chart("output tok/s", frame.trails.values(server.id, "", "throughput"), lambda value: f"{value:,.0f}"),
    )
    for pair in (charts[:2], charts[2:]):
        lines += beside([(draw_chart(chart, width, _CHART_HEIGHT, frame.glyphs), width) for chart in pair])
    return lines


def _latency(name: str, latency: ServiceLatency, missing: str) -> TextLine:
    values = (latency.p50, latency.p95, latency.p99)
    return line(" ", Span(left(name, 14), "muted"), *(right(numbers.seconds(value, missing), 10) for value in values))


def _seconds(value: float) -> str:
    return numbers.seconds(value, "")
