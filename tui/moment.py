"""Moments: the one that is shown, and those that a user asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from tui.timeline import Mark
from tui.tools import RecorderStatus

_RELATIVE = re.compile(r"-\s*(\d+)\s*([smh]?)")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_UNIT_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Moment(NamedTuple):
    """Where in time the picture stands. `span` and `marks` draw the strip, which only shows away from live."""

    mode: str
    when: float
    span: tuple[float, float] | None = None
    marks: Sequence[Mark] = ()
    recording: RecorderStatus | None = None


def parse_time(text: str, now: float) -> float | None:
    """`-10m` before now, or a time of day: the last such moment before now. None when it is neither."""
    relative = _RELATIVE.fullmatch(text.strip())
    if relative:
        return now - int(relative[1]) * _UNIT_SECONDS[relative[2]]
    clock = _CLOCK.fullmatch(text.strip())
    if clock is None:
        return None
    hour, minute, second = int(clock[1]), int(clock[2]), int(clock[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    today = datetime.fromtimestamp(now).astimezone()
    wanted = today.replace(hour=hour, minute=minute, second=second, microsecond=999_000)
    if wanted.timestamp() - 1 > now:
        wanted -= timedelta(days=1)
    return wanted.timestamp()
