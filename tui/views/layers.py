"""5 Layers: which rank owns which layers under LayerSplit, its scratch, and what that saves."""

from __future__ import annotations

from functools import partial

from ranktop.finding import Finding
from ranktop.folding import folded
from ranktop.plan.plan import Plan, RankPlan
from ranktop.reconcile.verdict import Line
from tui.draw.parts import Part, whole_parts
from tui.draw.spans import Span, TextLine, fit, left, line, plain, right
from tui.views.columns import tag_width
from tui.views.related import related
from tui.views.view import Frame, Page, RankTarget, Row


class LayersView:
    """A row a rank, a cell a layer (or several where the screen is narrow)."""

    key = "5"
    name = "layers"

    def draw(self, frame: Frame) -> Page:
        rows = [*related(frame, "LAYER-"), Row(line(" " * frame.width))]
        for server in frame.verdict.servers:
            if server.plan is not None:
                rows += _server_rows(server.id, server.plan, frame)
        if len(rows) == 2:
            rows.append(Row(line(Span("  no plan yet: no launch seen", "muted"))))
        return Page((), tuple(rows))


def _server_rows(server: str, plan: Plan, frame: Frame) -> list[Row]:
    split = plan.layer_split
    state = "on" if split.active else "off"
    parts: list[Part] = [
        (" ", Span(plain(server), "strong")),
        (f"{plan.model.layers} layers",),
        (f"LayerSplit {state}",),
    ]
    if split.active:
        parts += [
            (Span(f"at most {split.max_owned}, {split.layer_equivalents} with scratch", "muted"),),
            (Span(f"KV pool a token -{split.reduction_percent:.1f} % at most", "muted"),),
        ]
    rows = [Row(whole_parts(parts, frame.width, frame.glyphs.more))]
    for reason in split.reasons:
        told = (line(Span(f"   {piece}", "muted")) for piece in folded(plain(reason), max(20, frame.width - 4)))
        rows += [Row(fit(each, frame.width, frame.glyphs.more)) for each in told]
    owned = {rank.rank: rank.line("layers.owned") for rank in frame.verdict.ranks if rank.server == server}
    codes = {rank: finding.code for finding in frame.verdict.findings[::-1] for rank in _wrong_ranks(finding, server)}
    wide = tag_width((planned.rank for planned in plan.ranks), 10)
    named = max((len(code) + 2 for code in codes.values()), default=0)
    cells = max(10, min(plan.model.layers, frame.width - wide - 36 - named))
    rows.append(
        Row(
            fit(
                line(Span(f" {'rank':<{wide}}{right('owned', 6)}{right('index', 6)}  {_ruler(plan, cells)}", "muted")),
                frame.width,
                frame.glyphs.more,
            )
        )
    )
    rows += [
        Row(
            partial(_rank_row, planned, plan, wide, cells, frame, owned.get(planned.rank), codes.get(planned.rank, "")),
            RankTarget(server, planned.rank),
        )
        for planned in plan.ranks
    ]
    return rows


def _wrong_ranks(finding: Finding, server: str) -> tuple[str, ...]:
    is_meant = finding.server == server and finding.code.startswith("LAYER-") and finding.severity != "info"
    return finding.ranks if is_meant else ()


def _ruler(plan: Plan, cells: int) -> str:
    last = str(plan.model.layers - 1)
    return "0" + " " * max(1, cells - 1 - len(last)) + last


def _rank_row(
    planned: RankPlan, plan: Plan, wide: int, cells: int, frame: Frame, logged: Line | None, code: str
) -> TextLine:
    """The bar is the plan; how many layers the rank itself logged stands before it where that is another number."""
    layers, total = planned.layers, plan.model.layers
    begin, end = layers.start * cells // total, max(layers.start * cells // total + 1, layers.end * cells // total)
    index = planned.host.index_layers if planned.host else None
    scratch = f"+{planned.device.scratch_layers} scratch" if planned.device.scratch_layers else ""
    cells_of_layers = line(
        " ",
        Span(left(planned.rank, wide, frame.glyphs.more), "strong"),
        Span(right(_owned(layers.owned, logged), 6), "breach" if code else "text", bool(code)),
        right(frame.glyphs.missing if index is None else str(index), 6),
        "  ",
        Span(frame.glyphs.empty * begin, "faint"),
        Span(frame.glyphs.eighths[-1] * (end - begin), "breach" if code else "accent"),
        Span(frame.glyphs.empty * (cells - end), "faint"),
        Span(f" [{layers.start}, {layers.end}) {scratch}", "muted"),
        Span(f"  {code}" if code else "", "breach"),
    )
    return fit(cells_of_layers, frame.width, frame.glyphs.more)


def _owned(planned: int, logged: Line | None) -> str:
    seen = logged.seen if logged is not None else None
    return str(planned) if seen is None or seen == planned else f"{seen:.0f}/{planned}"
