"""The lines above the grid: what runs here, the sentence, the host, the tiers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from ranktop.clock import duration, time_of_day
from ranktop.reconcile.headline import loudest, sentence
from ranktop.reconcile.verdict import ServerVerdict, Verdict
from ranktop.reconcile.wording import counted
from tui.draw.glyphs import Glyphs
from tui.draw.parts import Part, whole_parts
from tui.draw.spans import Span, TextLine, fit, line, plain, spread
from tui.draw.spans import width as cells_of
from tui.tools import RecorderStatus

_NOT_LIVE = ("paused", "stale", "no answer")


def draw_title(
    verdict: Verdict,
    width: int,
    glyphs: Glyphs,
    *,
    mode: str,
    shown_at: float,
    recording: RecorderStatus | None = None,
) -> TextLine:
    """Host, model, version, size of the launch; on the right how long it is up, the time and the mode."""
    sample = verdict.sample
    host: list[Span | str] = [" ", Span(plain(sample.host_name), "strong", True)]
    if any(part is not None and part.source == "simulated" for part in (sample.host, sample.gpus)):
        host.append(Span(" simulated hardware", "warn"))
    parts: list[Part] = [host]
    if len(verdict.servers) == 1:
        parts += [(word,) for word in _launch(verdict.servers[0])]
    elif verdict.servers:
        parts.append((f"{len(verdict.servers)} servers, {counted(len(verdict.ranks), 'rank')}",))
    up = _up(verdict.servers, sample.at_unix_seconds)
    end = line(
        Span(f"{up}{time_of_day(shown_at)} ", "muted"),
        Span(mode, "warn" if mode.startswith(_NOT_LIVE) else "muted"),
        *_recording(recording),
        " ",
    )
    room = max(0, width - cells_of(end) - 1)
    return line(*whole_parts(parts, room, glyphs.more), " ", *end)


def _recording(status: RecorderStatus | None) -> tuple[Span, ...]:
    if status is None:
        return ()
    if status.problem:
        return (Span(f"   REC {plain(status.problem, 40)}", "warn", True),)
    return (Span(f"   REC {status.used_bytes / 1e6:.1f} MB", "accent"),)


def draw_headline(verdict: Verdict, width: int, glyphs: Glyphs) -> TextLine:
    """One sentence with the mark and the colour of its severity. Where it does not fit, since when goes first."""
    severity = verdict.headline_severity
    well = severity is None and verdict.within_plan_since is not None
    role = severity or ("ok" if well else "muted")
    mark = glyphs.marks[severity or "ok"] if severity or well else glyphs.marks["info"]
    text, more = _told(verdict, width - 4)
    begin = line(" ", Span(f"{mark} {text}", role, severity is not None))
    return fit(begin, width, glyphs.more) if not more else spread(begin, line(Span(more, role)), width, glyphs.more)


def _told(verdict: Verdict, room: int) -> tuple[str, str]:
    """The sentence, and at the end of the line how many findings more there are, when it does not fit with them."""
    whole = plain(verdict.headline)
    if cell_len(whole) <= room:
        return whole, ""
    loud = loudest(verdict.findings)
    short = plain(sentence(loud[0], len(verdict.servers))) if loud else ""
    if not short or not whole.startswith(short):
        return whole, ""
    return short, f"+{len(loud) - 1} more " if len(loud) > 1 else ""


def _launch(server: ServerVerdict) -> list[str]:
    """The most telling first: what does not fit is left out from the end."""
    words = [plain(server.model or "model unknown")]
    version = f"sglang {plain(server.version)}" if server.version else "sglang version unknown"
    if server.plan is None:
        return [*words, counted(server.ranks, "rank"), version]
    launch = server.plan.launch
    words.append(f"TP{launch.tp_size}" + (f" {launch.role}" if launch.role != "unified" else ""))
    if not launch.hicache:
        return [*words, "no L2", version]
    size = f"{launch.hicache_size_gb:g} GB/rank" if launch.hicache_size_gb else f"{launch.hicache_ratio:g}x L1"
    return [*words, f"L2 {size}", version, f"{launch.write_policy} {launch.mem_layout}"]


def _up(servers: Sequence[ServerVerdict], now: float) -> str:
    started = [server.started_unix_seconds for server in servers if server.started_unix_seconds is not None]
    return f"up {duration(max(0.0, now - min(started)))}   " if started else ""
