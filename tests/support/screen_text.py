"""What an app's main screen shows, as text."""

from __future__ import annotations

from textual.app import App

from tui.widgets.lines import Lines


def screen_text(app: App[None]) -> str:
    """Its rows, top to bottom, without blanks at their ends."""
    rows: list[str] = []
    for part in app.screen_stack[0].query(Lines):
        rows += ["".join(segment.text for segment in part.render_line(y)) for y in range(part.size.height)]
    return "\n".join(row.rstrip() for row in rows)
