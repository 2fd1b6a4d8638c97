"""The first picture of the live screen: on the terminal while Textual is still being imported."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from ranktop.cli.screen_choice import ScreenChoice
from ranktop.reconcile import Verdict
from tui.actions import ACTIONS, SHOW_VIEWS, VIEWS
from tui.first import first_frame, first_lines, painted
from tui.keys import rebound
from tui.terminal.early import EarlyScreen, given_back


@contextmanager
def first_picture(
    chosen: ScreenChoice, first_view: str, look_first: Callable[[], Verdict]
) -> Generator[EarlyScreen | None]:
    """Shows it, for the app to take over. None where another driver than ours will draw, or not on a terminal."""
    file = sys.__stderr__
    if "TEXTUAL_DRIVER" in os.environ or file is None or not file.isatty():
        yield None
        return
    width, height = shutil.get_terminal_size()
    view = next(view for view in VIEWS if view.name == first_view)
    frame = first_frame(look_first(), width, chosen.glyphs, chosen.columns)
    actions = rebound((*SHOW_VIEWS, *ACTIONS), chosen.keys)
    lines = first_lines(frame, view, actions[: len(SHOW_VIEWS)], actions[len(SHOW_VIEWS) :], height)
    with given_back(EarlyScreen(file, os.environ, (width, height))) as early:
        early.show(painted(lines, chosen.theme, os.environ))
        yield early
