"""Screen 1, Ranks: the sentence, the node, the tiers, every rank, and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from ranktop.reconcile.verdict import Verdict
from tui.draw.findings import draw_findings, draw_findings_header
from tui.draw.glyphs import Glyphs
from tui.draw.grid import draw_grid
from tui.draw.spans import Span, TextLine, fit, line
from tui.draw.top import draw_headline, draw_host, draw_sources, draw_tiers, draw_title
from tui.palette import Palette
from tui.widgets.lines import Lines


class RanksScreen(Screen[None]):
    """Draws verdicts; it holds the newest one only to draw it again when the size changes."""

    BINDINGS: list[BindingType] = [  # noqa: RUF012 - Textual's own form
        Binding("down,j", "scroll_ranks(1)", "scroll", show=False),
        Binding("up,k", "scroll_ranks(-1)", "scroll", show=False),
        Binding("pagedown", "scroll_ranks(10)", "scroll", show=False),
        Binding("pageup", "scroll_ranks(-10)", "scroll", show=False),
    ]

    def __init__(self, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__()
        self._palette = palette
        self._glyphs = glyphs
        self._shown: tuple[Verdict, str, float, Sequence[tuple[str, str]]] | None = None

    def compose(self) -> ComposeResult:
        for part in ("top", "grid-header", "grid", "findings-header", "findings", "keys"):
            yield Lines(self._palette, id=part)

    def show(self, verdict: Verdict, *, mode: str, now: float, keys: Sequence[tuple[str, str]]) -> None:
        """Draw a verdict. `now` is the clock shown, `mode` is live or paused, `keys` go into the bottom line."""
        self._shown = (verdict, mode, now, keys)
        width, glyphs = self.size.width, self._glyphs
        if width <= 0:
            return
        top = [
            draw_title(verdict, width, glyphs, mode=mode, shown_at=now),
            draw_headline(verdict, width, glyphs),
            draw_host(verdict, width, glyphs),
            draw_tiers(verdict, width, glyphs),
            draw_sources(verdict.sample.sources, verdict.sample.at_unix_seconds, width, glyphs),
            _rule(width, glyphs),
        ]
        grid = draw_grid(verdict, width - 2, glyphs)
        self._lines("top").show(top)
        self._lines("grid-header").show([_indent(grid.header, width)])
        self._lines("grid").show([_indent(row, width) for row in grid.rows])
        self._lines("findings-header").show([draw_findings_header(verdict, width, glyphs)])
        self._lines("findings").show(draw_findings(verdict, width, glyphs))
        self._lines("keys").show([_keys(keys, width, glyphs)])

    def use_palette(self, palette: Palette) -> None:
        """Another theme."""
        self._palette = palette
        for part in self.query(Lines):
            part.repaint_with(palette)

    def on_resize(self) -> None:
        if self._shown is not None:
            verdict, mode, now, keys = self._shown
            self.show(verdict, mode=mode, now=now, keys=keys)

    def action_scroll_ranks(self, rows: int) -> None:
        grid = self._lines("grid")
        part = grid if grid.max_scroll_y > 0 else self._lines("findings")
        part.scroll_to(y=part.scroll_offset.y + rows, animate=False)

    def _lines(self, part: str) -> Lines:
        return self.get_child_by_id(part, Lines)


def _indent(text_line: TextLine, width: int) -> TextLine:
    return fit(line(" ", *text_line), width)


def _rule(width: int, glyphs: Glyphs) -> TextLine:
    return (Span(glyphs.rule * width, "faint"),)


def _keys(keys: Sequence[tuple[str, str]], width: int, glyphs: Glyphs) -> TextLine:
    spans: list[Span] = [Span(" ")]
    for key, what in keys:
        spans += [Span(key, "accent"), Span(f" {what}   ", "muted")]
    return fit(line(*spans), width, glyphs.more)
