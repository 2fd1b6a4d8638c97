"""The moment that is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tui.timeline import Mark
from tui.tools import RecorderStatus


class Moment(NamedTuple):
    """Where in time the picture stands. `span` and `marks` draw the strip, which only shows away from live."""

    mode: str
    when: float
    span: tuple[float, float] | None = None
    marks: Sequence[Mark] = ()
    recording: RecorderStatus | None = None
