"""Pages of views as text, without an app."""

from __future__ import annotations

from ranktop.reconcile.verdict import Verdict
from tui.draw.glyphs import UNICODE
from tui.draw.spans import TextLine
from tui.trails import Trails
from tui.views.view import Frame, Page, View


def text(text_line: TextLine) -> str:
    return "".join(span.text for span in text_line)


def page(view: View, shown: Verdict, width: int = 120, height: int | None = None) -> Page:
    """Of the first verdict, the second after the start."""
    trails = Trails()
    trails.push(shown)
    return view.draw(Frame(shown, width, UNICODE, trails, height=height))


def rows(view: View, shown: Verdict, width: int = 120) -> list[str]:
    """Head and rows, without blanks at their ends."""
    drawn = page(view, shown, width)
    return [text(each).rstrip() for each in (*drawn.head, *(row.line for row in drawn.rows))]
