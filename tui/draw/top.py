"""What frames every view: the title, the sentence and the strip above it, the keys below."""

from __future__ import annotations

from collections.abc import Sequence

from ranktop.reconcile.verdict import Verdict
from tui.draw.glyphs import Glyphs
from tui.draw.spans import Span, TextLine, fit, line
from tui.draw.strip import draw_strip
from tui.draw.title import draw_headline, draw_title
from tui.moment import Moment


def draw_top(verdict: Verdict, moment: Moment, width: int, glyphs: Glyphs) -> list[TextLine]:
    """Two lines, and the strip away from live."""
    top = [
        draw_title(verdict, width, glyphs, mode=moment.mode, shown_at=moment.when, recording=moment.recording),
        draw_headline(verdict, width, glyphs),
    ]
    if moment.span is not None:
        top.append(draw_strip(moment.span, moment.marks, moment.when, width, glyphs))
    return top


def draw_keys(
    views: Sequence[tuple[str, str]], others: Sequence[tuple[str, str]], now: str, width: int, glyphs: Glyphs
) -> TextLine:
    """Views by number and as many other keys as fit, but always the first: without it nobody finds the rest, or sees
    that a filter is on. For it the other views go without their names."""
    first = sum(len(text) for text in others[0]) + 1 if others else 0
    numbers = [(key, name if name == now else "") for key, name in views]
    forms = (_views(views, now, " ", "  "), _views(views, now, "", " "), _views(numbers, now, "", " "))
    spans = next((form for form in forms if _length(form) + first <= width), forms[-1])
    room = width - _length(spans)
    for key, what in others:
        need = len(key) + len(what) + 1
        if need > room:
            break
        spans += [Span(key, "accent"), Span(f" {what}", "muted"), Span("  ")]
        room -= need + 2
    return fit(line(*spans), width, glyphs.more)


def _length(spans: Sequence[Span]) -> int:
    return sum(len(span.text) for span in spans)


def _views(views: Sequence[tuple[str, str]], now: str, between: str, after: str) -> list[Span]:
    spans: list[Span] = [Span(" ")]
    for key, name in views:
        shown = name == now
        spans += [Span(key, "accent"), Span(f"{between}{name}", "strong" if shown else "muted", shown), Span(after)]
    return spans
