"""`ranktop [watch]`: the live screen."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import click

from ranktop.cli.errors import OK
from ranktop.cli.importing import tls_later, uncollected
from ranktop.cli.launch_history import remember, remembered
from ranktop.cli.node_options import NodeOptions, make_feed, make_reconciler, make_session, node_options
from ranktop.cli.plain import watch_plainly
from ranktop.cli.screen_tools import screen_tools, start_recorder
from ranktop.cli.settings import Settings, load_settings
from ranktop.cli.stopping import until_a_signal
from ranktop.reconcile import Verdict
from ranktop.sample import GpuHold, Sample, SampleFeed

if TYPE_CHECKING:
    from tui.timekeys import OpenPast, Past
    from tui.tools import Recorder

_FIRST_LOOK_SECONDS = 0.2
"""For the processes of this node; without them the first picture has the host only."""

_HEAD_START_SECONDS = 2.0
"""Longer than Textual takes to import: asking servers meanwhile would only delay the first screen."""


@click.command()
@node_options
@click.option("--record", "record_path", default=None, metavar="FILE", help="Record into this file meanwhile.")
@click.option("--theme", default=None, metavar="NAME|FILE", help="Colour theme: a name or a TOML file.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Only ASCII signs.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
@click.option("--self", "own_cost", is_flag=True, help="Begin with Sources: what ranktop itself costs this node.")
def watch(
    node: NodeOptions, record_path: str | None, theme: str | None, ascii_only: bool, no_mouse: bool, own_cost: bool
) -> int:
    """Watch the SGLang servers of this node."""
    look = Look(theme, ascii_only, not no_mouse, "sources" if own_cost else "ranks")
    return show(node, look, record_path=record_path, remembers=True, open_past=_open_past)


class Look(NamedTuple):
    """How the screen is to look, as far as flags say."""

    theme: str | None = None
    ascii_only: bool = False
    mouse: bool = True
    first_view: str = "ranks"


def show(
    node: NodeOptions,
    look: Look,
    *,
    record_path: str | None = None,
    remembers: bool = False,
    open_past: OpenPast = lambda _: None,
) -> int:
    """Run the screen until the user quits. Reading starts before the screen's libraries are imported.

    `remembers`: compare with the launches of earlier runs, and keep those seen now for the next. `open_past` gives
    the recording that has the time before the last quarter of an hour.
    """
    from collectors.own import count_page_walks
    from ranktop.cli.memory import collect_seldom, share_one_arena

    share_one_arena()
    collect_seldom()
    with tls_later():
        import_module("http.client")
    settings = load_settings()
    count_page_walks()
    session = make_session(node)
    feed = make_feed(node, session, head_start_seconds=_HEAD_START_SECONDS)
    feed.start()
    launches = remembered() if remembers else ()
    reconciler = make_reconciler(node, launches)
    recorder = start_recorder(node, record_path) if record_path else None
    try:
        if not can_draw():
            watch_plainly(feed, reconciler.update, recorder, until_a_signal())
            return OK

        def look_first() -> Verdict:
            # A reconciler of its own: what the other one is to see is whole seconds of all sources.
            feed.wait_first(_FIRST_LOOK_SECONDS)
            return make_reconciler(node, launches).update(feed.preview())

        return _draw(node, feed, reconciler.update, look_first, settings, look, session, recorder, open_past)
    finally:
        feed.stop()
        if recorder is not None:
            recorder.stop()
        if remembers:
            remember(reconciler.launches)


def _open_past(shown: Sample) -> Past | None:
    """The file of a recorder on this node that has one of the servers shown."""
    from ranktop.recording.past import open_past

    return open_past(shown)


def can_draw() -> bool:
    """A terminal on both ends that knows how to move its cursor; or textual-serve, which brings its own driver."""
    if "TEXTUAL_DRIVER" in os.environ:
        return True
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _draw(
    node: NodeOptions,
    feed: SampleFeed,
    judge: Callable[[Sample], Verdict],
    look_first: Callable[[], Verdict],
    settings: Settings,
    look: Look,
    gpus: GpuHold,
    recorder: Recorder | None,
    open_past: OpenPast,
) -> int:
    with uncollected():
        from ranktop.cli.first_picture import first_picture
        from ranktop.cli.screen_choice import screen_choice

    chosen = screen_choice(settings, look.theme, look.ascii_only, look.mouse)
    with first_picture(chosen, look.first_view, look_first) as early:
        with uncollected(), tls_later():
            from tui.app import RanktopApp
            from tui.timekeys import LiveTime
        if early is not None:
            early.end_if_told()

        app = RanktopApp(
            LiveTime(feed, judge, open_past),
            chosen.themes,
            chosen.glyphs,
            screen_tools(node, gpus),
            recorder,
            look.first_view,
            keys=chosen.keys,
            columns=chosen.columns,
        )
        app.early = early
        try:
            app.run(mouse=chosen.mouse)
        finally:
            # One that the user started with `r` is nobody else's to close.
            if app.recorder is not None and app.recorder is not recorder:
                app.recorder.stop()
    return app.return_code or OK
