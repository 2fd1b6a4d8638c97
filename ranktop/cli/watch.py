"""`ranktop [watch]`: the live screen."""

from __future__ import annotations

import sys

import click

from ranktop.cli.errors import OK, UsageProblem
from ranktop.cli.node_options import NodeOptions, make_feed, make_reconciler, node_options


@click.command()
@node_options
@click.option("--theme", default=None, metavar="NAME|FILE", help="Colour theme: a name or a TOML file.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Only ASCII signs.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
def watch(node: NodeOptions, theme: str | None, ascii_only: bool, no_mouse: bool) -> int:
    """Watch the SGLang servers of this node."""
    return show(node, theme=theme, ascii_only=ascii_only, mouse=not no_mouse)


def show(node: NodeOptions, *, theme: str | None = None, ascii_only: bool = False, mouse: bool = True) -> int:
    """Run the screen until the user quits. Reading starts before the screen's libraries are imported."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageProblem("watch: needs a terminal on standard input and output (use `ranktop check` in a script)")
    feed = make_feed(node)
    reconciler = make_reconciler(node)
    feed.start()
    from tui.app import RanktopApp
    from tui.draw.glyphs import choose
    from tui.themes import ThemeError, load_theme, packaged_themes

    try:
        first = [load_theme(theme)] if theme else []
        others = [load_theme(name) for name in packaged_themes() if not first or name != first[0].name]
    except ThemeError as problem:
        raise UsageProblem(str(problem)) from problem
    app = RanktopApp(feed, reconciler.update, [*first, *others], choose(ascii_only))
    try:
        app.run(mouse=mouse)
    finally:
        feed.stop()
    return app.return_code or OK
