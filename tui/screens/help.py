"""`?`: what the screen shows, and the keys that work now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from ranktop.folding import folded
from tui.draw.glyphs import Glyphs
from tui.draw.spans import Span, TextLine, line
from tui.palette import Palette
from tui.widgets.lines import Lines

_KEY_WIDTH = 17
_WIDTH = 73
"""Cells inside of `#help` in ranktop.tcss, without its scroll bar."""


def help_lines(keys: Sequence[tuple[str, str]], glyphs: Glyphs) -> tuple[TextLine, ...]:
    """Keys first, then how to read the screen."""
    words = [
        ("seen/plan", "bytes found here against bytes that the launch should take"),
        ("primary", "the rank's L2 KV pool in pinned host memory, decimal GB"),
        ("indexer", "DSA index keys: --hicache-size does not count them"),
        ("local %", "sampled pool pages on the NUMA node of the rank's GPU"),
        ("L1 %", "tokens of the GPU pool that running requests hold; cached ones can be evicted and do not count"),
        ("L2 %", "tokens of the host pool in use"),
        ("L1>L2 L2>L1", "backup and load-back between the last two metrics pages"),
        ("hits, miss", "where prefill tokens came from between those pages, in percent"),
        ("avail", "host memory that can still be taken without swapping (MemAvailable)"),
        ("pools", "all host pools of this node, seen/planned"),
        ("psi", "share of the last 10 s in which some task waited for memory (/proc/pressure)"),
        ("free n0 n1", "what is free on each NUMA node"),
        ("ttft", "time to first token"),
        ("'", "value of the group: this rank reports none of its own"),
        ("~", "aged value: its source is late, or its log line is all there is"),
        (glyphs.missing, "not seen; never zero"),
        (glyphs.more, "text goes on where it is cut: a wider terminal shows the rest, and Enter where a row opens"),
    ]
    rows = [row for key, what in keys for row in _rows(key, what)]
    rows += [line(" "), *(row for word, what in words for row in _rows(word, what)), line(" ")]
    marks = "  ".join(f"{mark} {word}" for word, mark in glyphs.marks.items())
    rows.append(line(Span(f"  {marks}", "muted")))
    return tuple(rows)


def _rows(word: str, what: str) -> list[TextLine]:
    """The word, and what it means in as many lines as that takes."""
    pieces = folded(what, _WIDTH - _KEY_WIDTH - 2)
    words = [word, *[""] * (len(pieces) - 1)]
    return [
        line("  ", Span(f"{each:<{_KEY_WIDTH}}", "accent"), Span(piece, "text"))
        for each, piece in zip(words, pieces, strict=True)
    ]


class HelpScreen(ModalScreen[None]):
    """Closes on any of the usual keys. Sampling goes on behind it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter", "dismiss", "close"),
        Binding("down,j", "scroll(1)", "down"),
        Binding("up,k", "scroll(-1)", "up"),
        Binding("pagedown,space", "scroll(10)", "page down"),
        Binding("pageup", "scroll(-10)", "page up"),
        Binding("home", "scroll(-1000)", "first"),
        Binding("end", "scroll(1000)", "last"),
    ]

    def __init__(self, palette: Palette, glyphs: Glyphs, keys: Sequence[tuple[str, str]], closing_keys: str) -> None:
        """`keys` are told, `closing_keys` (separated by commas) close it."""
        super().__init__()
        self._bindings.bind(closing_keys, "dismiss", "close")
        self._palette = palette.on("panel")
        self._glyphs = glyphs
        self._keys = keys

    def compose(self) -> ComposeResult:
        yield Lines(self._palette, id="help")

    def action_scroll(self, rows: int) -> None:
        lines = self.get_child_by_id("help", Lines)
        lines.scroll_to(y=lines.scroll_offset.y + rows, animate=False)

    def on_mount(self) -> None:
        self.get_child_by_id("help", Lines).show(help_lines(self._keys, self._glyphs))
