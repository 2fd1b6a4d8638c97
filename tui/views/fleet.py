"""The fleet: a row a node, groups together, and what only a look over several nodes shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from rich.cells import cell_len

from ranktop.finding import SEVERITIES
from ranktop.fleet.look import Fleet
from ranktop.fleet.rows import NodeRow
from ranktop.reconcile.verdict import NodeVerdict, TierShares, TransferRates, Verdict
from ranktop.reconcile.wording import counted
from ranktop.sample import Sample
from tui.draw import numbers
from tui.draw.glyphs import Glyphs
from tui.draw.rule import draw_rule
from tui.draw.spans import Span, TextLine, fit, line, paragraph, plain
from tui.draw.table import Cell, Col, Table
from tui.views.finding_rows import draw_findings, draw_findings_header
from tui.views.view import Frame, NodeTarget, Page, Row, Sort

_COLUMNS = (
    Col("", 1, align_left=True),
    Col("node", 22, align_left=True),
    Col("role", 8, align_left=True, weight=5),
    Col("free GiB", 8, weight=2),
    Col("avail GB", 8, weight=1),
    Col("psi %", 5, weight=7),
    Col("L2 %", 4, weight=6),
    Col("hits L1/L2/L3 %", 15, weight=4),
    Col("ttft p95", 8, weight=3),
    Col("run/queue", 9, weight=8),
    Col("sglang", 9, align_left=True, weight=9),
    Col("findings", 16, align_left=True, grow=True),
)
_ORIGINS = {"sglang": "no exporter", "gone": "not scraped"}


class _Key(NamedTuple):
    """What a column sorts by; `None` comes last. `falling`: the largest first is the useful order."""

    value: Callable[[NodeRow], float | str | None]
    falling: bool = True


_KEYS: dict[str, _Key] = {
    "severity": _Key(lambda row: _place(row)),
    "node": _Key(lambda row: row.instance, False),
    "free GiB": _Key(lambda row: row.hbm_free_bytes, False),
    "avail GB": _Key(lambda row: row.host_available_bytes, False),
    "psi %": _Key(lambda row: row.pressure_ratio),
    "L2 %": _Key(lambda row: row.l2_used_ratio),
    "hits L1/L2/L3 %": _Key(lambda row: row.tiers.host_hit, False),
    "ttft p95": _Key(lambda row: row.ttft_p95_seconds),
    "run/queue": _Key(lambda row: row.queued_requests),
}
FLEET_SORT = Sort(("severity",), True)
"""The worst node first."""


def next_fleet_sort(sort: Sort) -> Sort:
    """The next column, in its useful order first."""
    keys = list(_KEYS)
    key = keys[(keys.index(sort.keys[0]) + 1) % len(keys)]
    return Sort((key,), _KEYS[key].falling)


def arranged_nodes(rows: Sequence[NodeRow], sort: Sort, wanted: str = "") -> list[NodeRow]:
    """Nodes that match the filter, sorted within their groups; ties by name."""
    key = _KEYS[sort.keys[0]].value

    def place(row: NodeRow) -> tuple[bool, float | str]:
        value = key(row)
        return (value is None) != sort.descending, 0.0 if value is None else value

    kept = [row for row in sorted(rows, key=lambda row: row.instance) if _matches(row, wanted)]
    kept.sort(key=place, reverse=sort.descending)
    return sorted(kept, key=lambda row: (row.group is None, row.group or ""))


def fleet_verdict(fleet: Fleet, where: str, problem: str | None) -> Verdict:
    """The fleet's title and sentence, in the shape that the main screen draws."""
    severities = Counter(row.severity for row in fleet.rows if row.severity not in (None, "info"))
    told = [f"{count} at {severity}" for severity in reversed(SEVERITIES) if (count := severities[severity])]
    origins = Counter(row.origin for row in fleet.rows)
    seen = f"{counted(origins['ranktop'], 'node')}: {', '.join(told) or 'nothing above info'}"
    # Of nodes that are not seen nothing is well.
    words = [seen] if origins["ranktop"] else [] if fleet.rows else ["no node"]
    words += [f"{origins[origin]} {word}" for origin, word in _ORIGINS.items() if origins[origin]]
    words += [f"incomplete: {plain(warning, 120)}" for warning in fleet.warnings[:1]]
    worst = max((SEVERITIES.index(row.severity) for row in fleet.rows if row.severity), default=-1)
    severity = SEVERITIES[worst] if worst > 0 else "warn" if fleet.warnings or origins["gone"] else None
    return Verdict(
        sample=Sample(fleet.at_unix_seconds, fleet.at_unix_seconds, where),
        servers=(),
        node=NodeVerdict(),
        ranks=(),
        tiers=TierShares(),
        transfers=TransferRates(),
        findings=fleet.findings,
        headline=problem or "; ".join(words),
        headline_severity="warn" if problem else severity,
        within_plan_since=None if problem or severity or not fleet.rows else fleet.at_unix_seconds,
    )


class FleetView:
    """What the fleet's app shows first."""

    key = ""
    name = "fleet"

    def __init__(self, fleet: Fleet, group: str | None = None, trouble: str | None = None) -> None:
        """`trouble`: why there is no newer answer. All of it stands here where the sentence on top has no room."""
        self._fleet = fleet
        self._group = group
        self._trouble = trouble

    def draw(self, frame: Frame) -> Page:
        glyphs, width = frame.glyphs, frame.width
        nodes = arranged_nodes(self._fleet.rows, frame.sort, frame.filter)
        shown = Table(_COLUMNS, width, glyphs.more)
        rows: list[Row] = []
        groups = Counter(row.group for row in nodes)
        for place, row in enumerate(nodes):
            if self._group is not None and (place == 0 or nodes[place - 1].group != row.group):
                name = plain(row.group) if row.group else f"no {self._group}"
                title = Span(f" {self._group} {name}" if row.group else f" {name}", "accent")
                heading = line(title, Span(f"  {counted(groups[row.group], 'node')}", "muted"))
                rows.append(Row(fit(heading, width, glyphs.more)))
            rows.append(Row(partial(_line, row, glyphs, shown), NodeTarget(row.instance)))
        if self._trouble is not None and cell_len(self._trouble) > width - 4:
            rows += _told(self._trouble, "warn", width, glyphs)
        elif self._trouble is None and not nodes:
            rows += _told(self._why_none(), "muted", width, glyphs)
        findings = draw_findings(frame.verdict, width, glyphs)
        tail_head = (line(" " * width), draw_findings_header(frame.verdict, width, glyphs)) if findings else ()
        head = (draw_rule(_order(frame.sort), width, glyphs), shown.header)
        return Page(head, tuple(rows), tail_head, findings or None)

    def _why_none(self) -> str:
        if self._fleet.rows:
            return "no node matches the filter"
        return (
            "no series of ranktop or SGLang at this time: does this Prometheus scrape `ranktop exporter`, and is "
            "--selector not too narrow?"
        )


def worst_node(fleet: Fleet, wanted: str = "") -> NodeTarget | None:
    """The node that the sentence is of: the worst of those that match the filter, by name among equals."""
    nodes = [row for row in fleet.rows if _matches(row, wanted)]
    return NodeTarget(max(nodes, key=_place).instance) if nodes else None


def _told(text: str, role: str, width: int, glyphs: Glyphs) -> list[Row]:
    return [Row(fit(each, width, glyphs.more)) for each in (line(" "), *paragraph(text, width, role))]


def _order(sort: Sort) -> str:
    """In words: what is sorted by has no column of its own (severity), or may have no room on this screen."""
    key = sort.keys[0]
    if key == "severity":
        return f"sorted by severity, {'worst' if sort.descending else 'best'} first"
    if key == "node":
        return f"sorted by node, {'last' if sort.descending else 'first'} name first"
    return f"sorted by {key}, {'largest' if sort.descending else 'smallest'} first"


def _line(row: NodeRow, glyphs: Glyphs, shown: Table) -> TextLine:
    return shown.row(_cells(row, glyphs))


def _cells(row: NodeRow, glyphs: Glyphs) -> list[Cell]:
    missing = glyphs.missing
    role = row.severity or ("ok" if row.origin == "ranktop" else "warn" if row.origin == "gone" else "muted")
    mark = glyphs.marks[row.severity or "ok"] if row.origin == "ranktop" else missing
    tiers = row.tiers
    hits = "/".join(numbers.percent(share, missing) for share in (tiers.device_hit, tiers.host_hit, tiers.storage_hit))
    queue = "/".join(_count(value, missing) for value in (row.running_requests, row.queued_requests))
    available = _gigabytes(row.host_available_bytes, missing)
    versions = dict.fromkeys(plain(server.version) for server in row.servers if server.version)
    return [
        Span(mark, role),
        Span(plain(row.instance), "strong"),
        plain(",".join(row.roles)) or missing,
        numbers.gib(row.hbm_free_bytes, missing),
        available,
        numbers.percent(row.pressure_ratio, missing, 1),
        numbers.percent(row.l2_used_ratio, missing),
        hits,
        numbers.seconds(row.ttft_p95_seconds, missing),
        queue,
        ",".join(versions) or missing,
        _findings(row),
    ]


def _findings(row: NodeRow) -> Span:
    if row.origin != "ranktop":
        return Span(_ORIGINS[row.origin], "warn" if row.origin == "gone" else "muted")
    told = [f"{plain(one.code)}({one.ranks})" if one.ranks > 1 else plain(one.code) for one in row.findings]
    return Span(" ".join(told), row.findings[0].severity if row.findings else "muted")


def _gigabytes(value: float | None, missing: str) -> str:
    """Whole ones, but what is nearly gone is not 0."""
    return missing if value is None else f"{value / 1e9:.{0 if value >= 10e9 else 2}f}"


def _count(value: float | None, missing: str) -> str:
    return missing if value is None else f"{value:.0f}"


def _matches(row: NodeRow, wanted: str) -> bool:
    words = [row.instance, row.group or "", row.origin, row.severity or "", *(one.code for one in row.findings)]
    for server in row.servers:
        words += [server.model or "", server.version or "", server.role or ""]
    return wanted.lower() in " ".join(words).lower()


def _place(row: NodeRow) -> float:
    if row.origin == "gone":
        return 1.5
    return 0.0 if row.severity is None else 1.0 + SEVERITIES.index(row.severity)
