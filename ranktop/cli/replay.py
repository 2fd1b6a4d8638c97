"""`ranktop replay`: the screen on a recording."""

from __future__ import annotations

import sys

import click

from ranktop.cli.errors import OK, NothingToLookAt, UsageProblem
from ranktop.cli.record_options import FILE, FROM, SALVAGE, opened, said_damage, seq_range
from ranktop.cli.settings import load_settings


@click.command()
@FILE
@FROM
@click.option(
    "--speed", type=click.FloatRange(0.25, 64), default=1.0, metavar="N", show_default=True, help="Seconds a second."
)
@SALVAGE
@click.option("--theme", default=None, metavar="NAME|FILE", help="Colour theme: a name or a TOML file.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Only ASCII signs.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
def replay(
    file: str, since: str | None, speed: float, salvage: bool, theme: str | None, ascii_only: bool, no_mouse: bool
) -> int:
    """Show a recording, also one that is still being written."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageProblem("replay: needs a terminal on standard input and output (use `ranktop export` in a script)")
    from ranktop.cli.screen_choice import screen_choice
    from ranktop.recording.errors import RecordingError
    from ranktop.recording.facts import reconciler_of
    from ranktop.recording.feed import RecordingFeed
    from tui.app import RanktopApp
    from tui.timekeys import ReplayTime

    chosen = screen_choice(load_settings(), theme, ascii_only, not no_mouse)
    with opened(file, salvage) as recording:
        try:
            feed = RecordingFeed(recording, lambda: reconciler_of(recording.meta))
        except RecordingError as problem:
            raise NothingToLookAt(f"replay: {problem}") from problem
        if since is not None:
            feed.go_to(seq_range(recording, since, None)[0])
        feed.play(speed)
        app = RanktopApp(
            ReplayTime(feed, feed.judge), chosen.themes, chosen.glyphs, keys=chosen.keys, columns=chosen.columns
        )
        app.run(mouse=chosen.mouse)
        said_damage(recording)
    return app.return_code or OK
