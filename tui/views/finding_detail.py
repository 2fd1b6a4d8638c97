"""Enter on a finding: what holds, since when, the numbers with their sources, and what to do."""

from __future__ import annotations

from ranktop.clock import time_of_day_from_iso
from ranktop.finding import Finding
from ranktop.folding import folded
from tui.draw import numbers
from tui.draw.spans import Span, TextLine, fit, left, line, paragraph, plain
from tui.views.view import Frame, Page, Row

_WIDEST_NAME = 28
_WIDEST_VALUE = 30
"""Further than this no source is moved by a longer value in another line."""


class FindingDetail:
    """Follows the finding while it is open; shows its last state after it closed."""

    key = ""
    name = "finding"

    def __init__(self, finding: Finding) -> None:
        self._finding = finding

    def draw(self, frame: Frame) -> Page:
        same = (self._finding.code, self._finding.server)
        current = next((known for known in frame.verdict.findings if (known.code, known.server) == same), None)
        self._finding = current or self._finding
        return Page((), tuple(Row(text) for text in _lines(self._finding, current is not None, frame)))


def as_markdown(finding: Finding) -> str:
    """For an incident channel."""
    lines = [f"**{finding.code}** ({finding.severity}) {', '.join(finding.ranks)}", "", finding.message, ""]
    lines += [f"- {name}: {value} ({finding.sources.get(name, 'unknown')})" for name, value in finding.evidence.items()]
    if finding.advice:
        lines += ["", finding.advice]
    return "\n".join(lines)


def _lines(finding: Finding, is_open: bool, frame: Frame) -> list[TextLine]:
    width, more = frame.width, frame.glyphs.more
    since = f"since {time_of_day_from_iso(finding.since)}" if finding.since else ""
    mark = frame.glyphs.marks[finding.severity]
    head = line(
        " ",
        Span(f"{mark} {finding.code}", finding.severity, True),
        Span(f"   {finding.severity}   {since}{'' if is_open else '   closed'}", "muted"),
    )
    rows = [head, line(" ")]
    rows += paragraph(plain(finding.message), width)
    rows.append(line(" "))
    if finding.ranks or finding.server:
        rows.append(line(Span(" where    ", "muted"), plain(f"{finding.server or ''} {', '.join(finding.ranks)}")))
    values = {name: plain(_value(name, value, frame.glyphs.missing)) for name, value in finding.evidence.items()}
    wide = min(_WIDEST_VALUE, max(map(len, values.values()), default=0))
    for name, value in values.items():
        source = finding.sources.get(name, "")
        begin = line(" ", Span(left(plain(name), _WIDEST_NAME, more), "muted"))
        end = line(Span(f"   {plain(source)}" if source else "", "muted"))
        # A path or a message is whole on lines of its own: this is where it is looked up.
        first, *others = folded(value, max(20, width - _WIDEST_NAME - 2 - len(source) - 3)) or [""]
        rows.append(line(*begin, f"{first:<{wide}}", *end))
        rows += [line(" " * (_WIDEST_NAME + 1), piece) for piece in others]
    root = next((one for one in frame.verdict.findings if one.code in finding.causes and _is_near(one, finding)), None)
    if finding.causes:
        told = ", ".join(finding.causes) + (f": {root.message}" if root is not None else "")
        rows += [
            line(Span(" caused by ", "muted") if not number else " " * 11, piece)
            for number, piece in enumerate(folded(plain(told), max(20, width - 12)))
        ]
    if finding.effects:
        rows.append(line(Span(" leads to  ", "muted"), plain(", ".join(finding.effects))))
    # What is done about the cause comes first.
    for advice in (root.advice if root is not None else "", finding.advice):
        if advice:
            rows.append(line(" "))
            rows += paragraph(plain(advice), width, "strong")
    return [fit(row, width, more) for row in rows]


def _is_near(root: Finding, effect: Finding) -> bool:
    return root.server is None or effect.server is None or root.server == effect.server


def _value(name: str, value: object, missing: str) -> str:
    """A number with its unit as far as the name gives one; what identifies something is no amount."""
    if value is None:
        return missing
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float) or name.startswith(("pid", "start_ticks", "parent_pid")):
        return str(value)
    text = f"{value:,.0f}" if float(value).is_integer() else f"{value:,}"
    if not name.endswith("_bytes") or abs(value) < 1e6:
        return text
    is_hbm = name.startswith("hbm")
    return f"{text} ({value / numbers.GIB:.2f} GiB)" if is_hbm else f"{text} ({numbers.size(value, missing)})"
