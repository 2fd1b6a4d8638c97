"""`ranktop [watch]`: the live screen."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import click

from ranktop.cli.errors import OK, UsageProblem
from ranktop.cli.launch_history import remember, remembered
from ranktop.cli.node_options import NodeOptions, make_feed, make_reconciler, make_session, node_options
from ranktop.cli.plain import watch_plainly
from ranktop.cli.settings import load_settings
from ranktop.reconcile import Verdict
from ranktop.sample import GpuHold, Sample, SampleFeed

_HEAD_START_SECONDS = 0.4
"""About as long as Textual takes to import: asking servers meanwhile would only delay the first screen."""


@click.command()
@node_options
@click.option("--theme", default=None, metavar="NAME|FILE", help="Colour theme: a name or a TOML file.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Only ASCII signs.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
def watch(node: NodeOptions, theme: str | None, ascii_only: bool, no_mouse: bool) -> int:
    """Watch the SGLang servers of this node."""
    return show(node, theme=theme, ascii_only=ascii_only, mouse=not no_mouse, remembers=True)


def show(
    node: NodeOptions,
    *,
    theme: str | None = None,
    ascii_only: bool = False,
    mouse: bool = True,
    remembers: bool = False,
) -> int:
    """Run the screen until the user quits. Reading starts before the screen's libraries are imported.

    `remembers`: compare with the launches of earlier runs, and keep those seen now for the next.
    """
    settings = load_settings()
    session = make_session(node)
    feed = make_feed(node, session, head_start_seconds=_HEAD_START_SECONDS)
    feed.start()
    reconciler = make_reconciler(node, remembered() if remembers else ())
    try:
        if not can_draw():
            watch_plainly(feed, reconciler.update)
            return OK
        return _draw(
            feed,
            reconciler.update,
            theme or settings.screen.theme,
            ascii_only or settings.screen.ascii,
            mouse and settings.screen.mouse,
            session,
        )
    finally:
        feed.stop()
        if remembers:
            remember(reconciler.launches)


def can_draw() -> bool:
    """A terminal on both ends that knows how to move its cursor; or textual-serve, which brings its own driver."""
    if "TEXTUAL_DRIVER" in os.environ:
        return True
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _draw(
    feed: SampleFeed,
    judge: Callable[[Sample], Verdict],
    theme: str,
    ascii_only: bool,
    mouse: bool,
    gpus: GpuHold,
) -> int:
    from tui.app import RanktopApp
    from tui.draw.glyphs import choose
    from tui.themes import ThemeError, load_theme, packaged_themes
    from tui.timekeys import LiveTime

    try:
        first = load_theme(theme)
        others = [load_theme(name) for name in packaged_themes() if name != first.name]
    except ThemeError as problem:
        raise UsageProblem(str(problem)) from problem
    app = RanktopApp(LiveTime(feed, judge), [first, *others], choose(ascii_only), gpus)
    app.run(mouse=mouse)
    return app.return_code or OK
