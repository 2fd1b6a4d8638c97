"""Two lines of what ranktop itself costs, against its budgets."""

from __future__ import annotations

from tui.draw import numbers
from tui.draw.spans import Span, TextLine, fit, line, plain
from tui.own import OwnCost

CPU_SHARE = 0.045
RSS_BYTES = 60 << 20
TERMINAL_BYTES_PER_SECOND = 2048
HTTP_SHARE = 0.01
"""The budgets of docs/performance.md; what is over one is drawn as a warning."""


def own_lines(own: OwnCost, width: int, missing: str, more: str) -> tuple[TextLine, TextLine]:
    """CPU, memory, bytes and page walks; then what every server was asked."""
    memory = missing if own.rss_bytes is None else f"{own.rss_bytes / (1 << 20):.1f} MiB"
    first = line(
        Span(" ranktop itself", "strong"),
        *_fact("CPU", f"{numbers.percent(own.cpu_share, missing, 1)} %", own.cpu_share, CPU_SHARE),
        *_fact("memory", memory, own.rss_bytes, RSS_BYTES),
        *_fact(
            "terminal",
            numbers.rate(own.terminal_bytes_per_second, missing),
            own.terminal_bytes_per_second,
            TERMINAL_BYTES_PER_SECOND,
        ),
        *_fact("page walks", str(own.page_walks), own.page_walks, 0),
    )
    second: list[Span] = [Span(" its share of HTTP processes", "strong"), Span("  at most", "muted")]
    for asking in own.asked:
        role = "warn" if asking.share > HTTP_SHARE else "text"
        second += [
            Span(f"  {numbers.percent(asking.share, missing, 2)} %", role),
            Span(f" {plain(asking.address)} ({asking.per_minute:.0f} requests/min)", "muted"),
        ]
    if not own.asked:
        second.append(Span(f"  {missing}", "muted"))
    return fit(first, width, more), fit(line(*second), width, more)


def _fact(name: str, text: str, value: float | None, limit: float) -> tuple[Span, Span]:
    role = "warn" if value is not None and value > limit else "text"
    return Span(f"  {name} ", "muted"), Span(text, role)
