"""The lines above the grid: what runs here, the sentence, the host, the tiers."""

from __future__ import annotations

from collections.abc import Sequence

from ranktop.clock import duration, time_of_day
from ranktop.reconcile.verdict import ServerVerdict, Verdict
from tui.draw.glyphs import Glyphs
from tui.draw.spans import Span, TextLine, fit, line, plain, spread
from tui.tools import RecorderStatus

SEPARATOR = "   "


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
    begin: list[Span | str] = [" ", Span(plain(sample.host_name), "strong", True)]
    if any(part is not None and part.source == "simulated" for part in (sample.host, sample.gpus)):
        begin.append(Span(" simulated hardware", "warn"))
    if len(verdict.servers) == 1:
        begin += [SEPARATOR, Span(_launch(verdict.servers[0]), "text")]
    elif verdict.servers:
        begin += [SEPARATOR, f"{len(verdict.servers)} servers, {len(verdict.ranks)} ranks"]
    up = _up(verdict.servers, sample.at_unix_seconds)
    end = line(
        Span(f"{up}{time_of_day(shown_at)} ", "muted"),
        Span(mode, "warn" if mode.startswith("paused") else "muted"),
        *_recording(recording),
        " ",
    )
    return spread(line(*begin), end, width)


def _recording(status: RecorderStatus | None) -> tuple[Span, ...]:
    if status is None:
        return ()
    if status.problem:
        return (Span(f"   REC {plain(status.problem, 40)}", "warn", True),)
    return (Span(f"   REC {status.used_bytes / 1e6:.1f} MB", "accent"),)


def draw_headline(verdict: Verdict, width: int, glyphs: Glyphs) -> TextLine:
    """One sentence with the mark and the colour of its severity."""
    severity = verdict.headline_severity
    well = severity is None and verdict.within_plan_since is not None
    role = severity or ("ok" if well else "muted")
    mark = glyphs.marks[severity or "ok"] if severity or well else glyphs.marks["info"]
    return fit(line(" ", Span(f"{mark} {plain(verdict.headline)}", role, severity is not None)), width, glyphs.more)


def _launch(server: ServerVerdict) -> str:
    words = [plain(server.model or "model unknown")]
    words.append(f"sglang {plain(server.version)}" if server.version else "sglang version unknown")
    if server.plan is not None:
        launch = server.plan.launch
        words.append(f"TP{launch.tp_size}")
        if launch.role != "unified":
            words.append(launch.role)
        if launch.hicache:
            size = f"{launch.hicache_size_gb:g} GB/rank" if launch.hicache_size_gb else f"{launch.hicache_ratio:g}x L1"
            words.append(f"L2 {size} {launch.write_policy} {launch.mem_layout}")
        else:
            words.append("no L2")
    else:
        words.append(f"{server.ranks} ranks")
    return "  ".join(words)


def _up(servers: Sequence[ServerVerdict], now: float) -> str:
    started = [server.started_unix_seconds for server in servers if server.started_unix_seconds is not None]
    return f"up {duration(max(0.0, now - min(started)))}   " if started else ""
