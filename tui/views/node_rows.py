"""The node in three lines: host memory, tiers, sources."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ranktop.reconcile.verdict import Line, Verdict
from ranktop.sample import SourceState
from tui.draw import numbers
from tui.draw.glyphs import Glyphs, bar
from tui.draw.parts import SEPARATOR, Part, whole_parts
from tui.draw.spans import Span, TextLine, fit, line, plain, right


def draw_host(verdict: Verdict, width: int, glyphs: Glyphs) -> TextLine:
    """The node's host memory: what the pools take of the total, what is left, pressure, NUMA nodes, sources."""
    node, missing = verdict.node, glyphs.missing
    total, available = node.line("host.total"), node.line("host.available")
    pools, reserve = node.line("host.pools"), node.line("host.reserve")
    used = total.seen - available.seen if total.seen is not None and available.seen is not None else None
    limit = 1 - reserve.planned / total.seen if reserve.planned and total.seen else None
    filled, rest = bar(glyphs, used / total.seen if used is not None and total.seen else None, 14, limit)
    parts: list[Part] = [
        (
            Span(" host ", "muted"),
            Span(f"{_size(used, missing)} of {numbers.size(total.seen, missing)} ", _role(total)),
            Span(filled, "bar"),
            Span(rest, "faint"),
        ),
        (Span("avail ", "muted"), Span(_size(available.seen, missing), _role(available))),
        (
            Span("pools ", "muted"),
            Span(f"{numbers.size(pools.seen, missing)}/{numbers.size(pools.planned, missing)}", _role(pools)),
        ),
    ]
    pressure = node.line("host.pressure")
    if pressure.seen is not None:
        parts.append((Span("psi ", "muted"), Span(f"{pressure.seen:4.1f} %", "text")))
    headrooms = [shown for shown in node.lines if shown.line.startswith("numa.") and shown.line.endswith(".headroom")]
    shown = whole_parts([*parts, _free(headrooms, missing)], width, glyphs.more) if headrooms else ()
    if not headrooms or _ends_in(shown, glyphs.more):
        tightest = sorted(headrooms, key=lambda one: math.inf if one.seen is None else one.seen)[:1]
        shown = whole_parts([*parts, *(_free(tightest, missing, "least free ") for _ in tightest)], width, glyphs.more)
    return shown


def _free(headrooms: Sequence[Line], missing: str, title: str = "free ") -> Part:
    """Of every NUMA node, in the unit of the largest."""
    scale = numbers.byte_scale([one.seen for one in headrooms if one.seen is not None])
    spans: list[Span | str] = [Span(title, "muted")]
    for one in headrooms:
        amount = right(missing if one.seen is None else f"{one.seen / scale.divisor:.1f}", 5)
        spans += [Span(f"n{one.line.split('.')[1]} ", "muted"), Span(f"{amount} ", _role(one))]
    return [*spans, Span(scale.unit, "muted")]


def _size(amount: float | None, missing: str) -> str:
    """In a width of its own, like all that changes here: what stands behind it stays in its place."""
    return right(numbers.size(amount, missing), 7)


def _ends_in(text_line: TextLine, more: str) -> bool:
    return "".join(span.text for span in text_line).rstrip().endswith(more)


def draw_tiers(verdict: Verdict, width: int, glyphs: Glyphs) -> TextLine:
    """Where prefill tokens came from, what moved between the tiers, how long users wait."""
    tiers, transfers, missing = verdict.tiers, verdict.transfers, glyphs.missing
    hits: list[Span | str] = [Span(" hits ", "muted")]
    for name, share in (
        ("L1", tiers.device_hit),
        ("L2", tiers.host_hit),
        ("L3", tiers.storage_hit),
        ("miss", tiers.miss),
    ):
        hits += [Span(f"{name} ", "muted"), f"{right(numbers.percent(share, missing, 1), 4)}  "]
    parts: list[Part] = [[*hits, Span("%", "muted")]]
    if tiers.miss is None and tiers.device_hit is None and tiers.detail:
        parts = [(Span(" hits ", "muted"), f"{missing} ", Span(f"({plain(tiers.detail)})", "muted"))]
    ttft = verdict.servers[0].service.ttft_seconds if len(verdict.servers) == 1 else None
    if ttft is not None and ttft.p50 is not None:
        p50, p99 = (right(numbers.seconds(time, missing), 6) for time in (ttft.p50, ttft.p99))
        times = (p50, Span(" p99 ", "muted"), p99)
        parts.append((Span("ttft p50 ", "muted"), *times))
    for name, rate in (
        ("L1>L2", transfers.backup_bytes_per_second),
        ("L2>L1", transfers.load_back_bytes_per_second),
        ("L3>L2", transfers.prefetch_bytes_per_second),
    ):
        if rate is not None:
            parts.append((Span(f"{name} ", "muted"), right(numbers.rate(rate, missing), 9)))
    running = verdict.node.line("requests.running").seen
    if running is not None:
        queued = verdict.node.line("requests.queued").seen
        waiting = f"{queued:.0f}" if queued is not None else missing
        parts.append((Span("running ", "muted"), f"{running:.0f}", Span(" queued ", "muted"), waiting))
    return whole_parts(parts, width, glyphs.more)


def draw_sources(sources: Sequence[SourceState], now: float, width: int, glyphs: Glyphs) -> TextLine:
    """How many sources are well; by name those that are not, and the age of the slow ones."""
    spans: list[Span | str] = []
    well, absent, waiting = 0, 0, 0
    for name in dict.fromkeys(state.name for state in sources):
        worst = max((state for state in sources if state.name == name), key=lambda state: _RANK[state.state])
        age = now - worst.at_unix_seconds if worst.at_unix_seconds is not None else None
        if worst.state in ("error", "stale"):
            word = "failing" if worst.state == "error" else "stale"
            spans.append(Span(f"{SEPARATOR}{name} {word}", "warn"))
        elif worst.code == "waiting" and worst.took_seconds is None:
            waiting += 1
        elif worst.state == "no_data":
            absent += 1
            if name in _WANTED:
                spans.append(Span(f"{SEPARATOR}no {name} here", "muted"))
        else:
            well += 1
            if name in _SLOW and age is not None:
                spans.append(Span(f"{SEPARATOR}{name} {age:.0f} s ago", "muted"))
    head = f" sources {well} ok" + (f", {absent} not here" if absent else "")
    head += f", {waiting} not read yet" if waiting else ""
    return fit(line(Span(head, "muted"), *spans), width, glyphs.more)


_SLOW = ("metrics",)
_WANTED = ("nvml", "metrics", "serverlog")
"""Sources whose absence is named: without them whole columns are empty."""
_RANK = {"ok": 0, "no_data": 1, "stale": 2, "error": 3}


def _role(shown: Line) -> str:
    return "breach" if shown.status in ("over", "under") else "text" if shown.seen is not None else "muted"
