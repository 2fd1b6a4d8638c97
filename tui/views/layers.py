"""5 Layers: which rank owns which layers under LayerSplit, its scratch, and what that saves."""

from __future__ import annotations

from functools import partial

from ranktop.plan.plan import Plan, RankPlan
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
    about = line(
        " ",
        Span(plain(server), "strong"),
        Span(f"   {plan.model.layers} layers   LayerSplit {state}", "text"),
        Span(
            f"   at most {split.max_owned} owned, {split.layer_equivalents} with scratch" if split.active else "",
            "muted",
        ),
        Span(f"   KV pool a token -{split.reduction_percent:.1f} % at most" if split.active else "", "muted"),
    )
    rows = [Row(fit(about, frame.width, frame.glyphs.more))]
    rows += [
        Row(fit(line(Span(f"   {plain(reason)}", "muted")), frame.width, frame.glyphs.more)) for reason in split.reasons
    ]
    wide = tag_width((planned.rank for planned in plan.ranks), 10)
    cells = max(10, min(plan.model.layers, frame.width - wide - 36))
    rows.append(
        Row(
            fit(
                line(
                    Span(f" {left('rank', wide)}{right('owned', 6)}{right('index', 6)}  {_ruler(plan, cells)}", "muted")
                ),
                frame.width,
            )
        )
    )
    rows += [
        Row.later(partial(_rank_row, planned, plan, wide, cells, frame), RankTarget(server, planned.rank))
        for planned in plan.ranks
    ]
    return rows


def _ruler(plan: Plan, cells: int) -> str:
    last = str(plan.model.layers - 1)
    return "0" + " " * max(1, cells - 1 - len(last)) + last


def _rank_row(planned: RankPlan, plan: Plan, wide: int, cells: int, frame: Frame) -> TextLine:
    layers, total = planned.layers, plan.model.layers
    begin, end = layers.start * cells // total, max(layers.start * cells // total + 1, layers.end * cells // total)
    index = planned.host.index_layers if planned.host else None
    scratch = f"+{planned.device.scratch_layers} scratch" if planned.device.scratch_layers else ""
    cells_of_layers = line(
        " ",
        Span(left(planned.rank, wide, frame.glyphs.more), "strong"),
        right(str(layers.owned), 6),
        right(frame.glyphs.missing if index is None else str(index), 6),
        "  ",
        Span(frame.glyphs.empty * begin, "faint"),
        Span(frame.glyphs.eighths[-1] * (end - begin), "accent"),
        Span(frame.glyphs.empty * (cells - end), "faint"),
        Span(f" [{layers.start}, {layers.end}) {scratch}", "muted"),
    )
    return fit(cells_of_layers, frame.width)
