"""The first picture: what the app will draw, put together without Textual, which takes longer to import than all
that comes before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.color import ColorSystem

from ranktop.reconcile.verdict import Verdict
from tui.course import Course
from tui.draw.glyphs import Glyphs
from tui.draw.spans import TextLine, fit
from tui.draw.top import draw_keys, draw_top
from tui.keys import Action, short_keys, view_keys
from tui.moment import Moment
from tui.styles import in_grey, styles_of
from tui.themes import ThemeColors
from tui.views.view import Frame, View, draw_page, most_rows


def first_frame(verdict: Verdict, width: int, glyphs: Glyphs, columns: tuple[str, ...] = ()) -> Frame:
    """Of the very first verdict."""
    course = Course()
    course.push(verdict)
    return Frame(
        verdict,
        width,
        glyphs,
        course.trails,
        events=course.events.rows(),
        columns=columns,
        batches=course.events.batches(),
    )


def first_lines(
    frame: Frame, view: View, views: Iterable[Action], actions: Iterable[Action], rows: int
) -> list[TextLine]:
    """`rows` lines of `frame.width` cells, live and scrolled to the top, as MainScreen lays them out."""
    width, glyphs = frame.width, frame.glyphs
    top = draw_top(frame.verdict, Moment("live", frame.verdict.sample.at_unix_seconds), width, glyphs)
    height = rows - len(top) - 1
    page, _ = draw_page(view, frame._replace(height=height))
    most = height if page.tail is None else most_rows(height, page)
    lines = [*top, *page.head, *(row.line for row in page.rows[:most])]
    lines += [*page.tail_head, *(row.line for row in (page.tail or ())[:rows])]
    lines = [fit(one, width, glyphs.more) for one in lines[: rows - 1]]
    lines += [fit((), width, glyphs.more)] * (rows - 1 - len(lines))
    return [*lines, draw_keys(view_keys(views), short_keys(actions), view.name, width, glyphs)]


def painted(lines: Iterable[TextLine], theme: ThemeColors, environment: Mapping[str, str]) -> str:
    """For the terminal: each line from where it begins, in the colours that Textual will use there."""
    system = color_system(environment)
    styles = styles_of(in_grey(theme) if "NO_COLOR" in environment else theme)
    return "".join(
        f"\x1b[{row};1H{''.join([styles[span.role, span.bold].render(span.text, color_system=system) for span in one])}"
        for row, one in enumerate(lines, 1)
    )


def color_system(environment: Mapping[str, str]) -> ColorSystem:
    """As rich.console.Console of Rich 14 finds it out; that module alone takes a tenth of the first picture's time."""
    if environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return ColorSystem.TRUECOLOR
    term = environment.get("TERM", "").strip().lower()
    return ColorSystem.EIGHT_BIT if term.endswith(("-256color", "-kitty")) else ColorSystem.STANDARD
