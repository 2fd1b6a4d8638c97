"""The report as HTML: everything in one file, no request to anywhere, readable on paper and without JavaScript."""

from __future__ import annotations

import html
import importlib.resources
from collections.abc import Iterable, Sequence
from string import Template
from typing import Any

import msgspec

from ranktop.clock import duration, iso_utc
from ranktop.printable import printable
from ranktop.reconcile.grouping import rank_span
from ranktop.reconcile.verdict import Line, Verdict
from ranktop.recording.episodes import Episode
from ranktop.recording.notes import CLOCK, GAP, MARK, SOURCE, Note
from ranktop.recording.reader import Recording
from ranktop.recording.report.charts import Chart

AROUND_SECONDS = 30.0
MAX_EVENTS_AROUND = 40
MAX_ROWS = 500
_LEGEND = "Shaded: a breach or worse was open. Dashed: planned, or a limit. Thin line: a mark. Times are UTC."

Row = Sequence[Any]


def page(
    recording: Recording,
    last: Verdict,
    times: list[float],
    charts: list[Chart],
    found: list[Episode],
    notes: list[Note],
) -> str:
    """The whole document. Text from the recording is escaped: it is never markup."""
    t0, t1 = recording.index.spans[0].t0, max(span.t1 for span in recording.index.spans)
    bands = _bands(found, t1)
    marks = [(note.at_unix_seconds, note.text) for note in notes if note.kind == MARK]
    data = {"times": times, "charts": charts, "bands": bands, "marks": marks}
    sections = [
        ("Launch", _launch(recording, last)),
        ("Findings", _findings(found)),
        (
            "Over time",
            f'<p class="quiet">{_LEGEND}</p><div id="charts"></div>',
        ),
        ("Plan against seen, at the end", _ranks(last)),
        ("Phases", _phases(last)),
        ("Marks", _events([note for note in notes if note.kind == MARK])),
        ("Around each breach", _around(found, notes)),
        ("Sources and gaps", _sources(recording, last, notes)),
    ]
    return Template(_file("page.html")).substitute(
        title=_text(f"ranktop report: {last.sample.host_name or 'node'}, {iso_utc(t0)}"),
        heading=_text(last.sample.host_name or "node"),
        span=_text(f"{iso_utc(t0)} to {iso_utc(t1)} ({duration(t1 - t0)}), {recording.index.count} samples"),
        sentence=_text(last.headline),
        body="".join(f"<section><h2>{_text(title)}</h2>{content}</section>" for title, content in sections),
        # "<" could end the script element that holds the data.
        data=printable(msgspec.json.encode(data).decode()).replace("<", "\\u003c"),
        uplot_css=_file("uPlot.min.css"),
        uplot_js=_file("uPlot.iife.min.js"),
        uplot_license=_text(_file("uPlot.LICENSE")),
        report_css=_file("page.css"),
        report_js=_file("page.js"),
    )


def _bands(found: list[Episode], end: float) -> list[tuple[float, float, str]]:
    """(begin, end, severity) of the stretches to shade, those that overlap as one."""
    bands: list[tuple[float, float, str]] = []
    for severity in ("breach", "critical"):
        for episode in found:
            if episode.severity != severity:
                continue
            begin, last = episode.begin_unix_seconds, episode.end_unix_seconds or end
            if bands and bands[-1][2] == severity and begin <= bands[-1][1]:
                bands[-1] = (bands[-1][0], max(bands[-1][1], last), severity)
            else:
                bands.append((begin, last, severity))
    return bands


def _file(name: str) -> str:
    return importlib.resources.files("ranktop.recording.report").joinpath(name).read_text(encoding="utf-8")


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return html.escape(printable(str(value)))


def _clock(unix_seconds: float) -> str:
    return iso_utc(unix_seconds)[11:19]


def _table(head: Row, rows: Iterable[Row]) -> str:
    body = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    if not body:
        return '<p class="quiet">none</p>'
    titles = "".join(f"<th>{_text(cell)}</th>" for cell in head)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _launch(recording: Recording, last: Verdict) -> str:
    rows = [
        (server.id, server.version, server.model, server.role, server.ranks, server.plan_origin, server.plan_error)
        for server in last.servers
    ]
    servers = _table(("server", "SGLang", "model", "role", "ranks", "plan from", "no plan because"), rows)
    launches = [
        (server.id, name, value)
        for server in last.servers
        if server.plan is not None
        for name, value in msgspec.to_builtins(server.plan.launch).items()
        if value not in (None, [], ())
    ]
    facts = _table(("recording", ""), sorted(recording.meta.items()))
    return (
        servers
        + _details("Launch, resolved", _table(("server", "argument", "value"), launches))
        + _details("Recording", facts)
    )


def _details(title: str, content: str) -> str:
    return f"<details><summary>{_text(title)}</summary>{content}</details>"


def _ranks(last: Verdict) -> str:
    """Ranks that say the same share a row."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for rank in last.ranks:
        for line in rank.lines:
            if line.planned is not None or line.status in ("over", "under"):
                alike.setdefault((rank.server, line.line, *_line(line)), []).append(rank.rank)
    rows = [(row[0], rank_span(ranks), *row[1:]) for row, ranks in sorted(alike.items())]
    node = [("node", "", line.line, *_line(line)) for line in last.node.lines if line.seen is not None]
    head = ("server", "ranks", "line", "planned", "seen", "difference", "status", "source")
    return _table(head, rows) + _details("Node", _table(head, node))


def _line(line: Line) -> tuple[str, str, str, str, str]:
    return (
        _amount(line.planned, line.unit),
        _amount(line.seen, line.unit),
        _amount(line.difference, line.unit),
        line.status,
        line.source or line.detail,
    )


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "bytes":
        return f"{value / 1e9:.3f} GB"
    return f"{value:,.6g} {unit}" if isinstance(value, float) else f"{value:,} {unit}"


def _findings(found: list[Episode]) -> str:
    rows = [
        (
            _clock(episode.begin_unix_seconds),
            "open"
            if episode.end_unix_seconds is None
            else duration(episode.end_unix_seconds - episode.begin_unix_seconds),
            episode.severity,
            episode.code,
            episode.where,
            episode.message,
            episode.advice,
        )
        for episode in found[:MAX_ROWS]
    ]
    return _table(("since", "for", "severity", "finding", "where", "what", "advice"), rows)


def _phases(last: Verdict) -> str:
    rows = [
        (_clock(phase.at_unix_seconds), phase.phase, phase.server, phase.rank, phase.source) for phase in last.phases
    ]
    return _table(("at", "phase", "server", "rank", "source"), rows[:MAX_ROWS])


def _events(notes: Sequence[Note]) -> str:
    rows = [(_clock(note.at_unix_seconds), note.kind, note.server, note.rank, note.text) for note in notes[:MAX_ROWS]]
    return _table(("at", "event", "server", "rank", "text"), rows)


def _around(found: list[Episode], notes: list[Note]) -> str:
    parts: list[str] = []
    for episode in found:
        if episode.severity not in ("breach", "critical"):
            continue
        begin = episode.begin_unix_seconds
        near = [note for note in notes if abs(note.at_unix_seconds - begin) <= AROUND_SECONDS][:MAX_EVENTS_AROUND]
        parts.append(_details(f"{episode.code} {episode.where} {_clock(begin)}", _events(near)))
    return "".join(parts[:MAX_ROWS]) or '<p class="quiet">no breach was recorded</p>'


def _sources(recording: Recording, last: Verdict, notes: list[Note]) -> str:
    rows = [(source.name, source.server, source.state, source.code, source.detail) for source in last.sample.sources]
    changes = [note for note in notes if note.kind in (SOURCE, CLOCK, GAP)]
    return (
        _table(("source", "server", "state at the end", "code", "detail"), rows)
        + _details("Changes of sources, clock and gaps", _events(changes))
        + _details("Not readable", _table(("damage",), [(line,) for line in recording.damage]))
    )
