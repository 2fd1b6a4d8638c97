"""Times and durations as people type them (contracts.md): `90`, `15m`, `2h`; ISO 8601, `14:03`, `-10m`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from datetime import time as time_of_day

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)?")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(k|M|G|Ki|Mi|Gi)?B?")
_MAX_SECONDS = 100 * 366 * 86400.0
_MAX_BYTES = 1 << 60
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


def parse_duration(text: str) -> float:
    """Seconds. ValueError when it is no duration, or one that no clock can add."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text[:80]!r} is no duration (like 90, 90s, 15m, 2h)")
    seconds = float(found[1]) * _SECONDS[found[2] or ""]
    if seconds > _MAX_SECONDS:
        raise ValueError(f"{text[:80]!r}: a duration of at most 100 years is accepted (like 90, 90s, 15m, 2h)")
    return seconds


def parse_size(text: str) -> int:
    """Bytes; `M` is 10^6 and `Mi` 2^20. ValueError when it is no size, or one that no disk has."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text[:80]!r} is no size (like 500M, 2G, 512Mi)")
    size = float(found[1]) * _BYTES[found[2] or ""]
    if size > _MAX_BYTES:
        raise ValueError(f"{text[:80]!r}: a size of at most 1 EiB is accepted (like 500M, 2G, 512Mi)")
    return int(size)


def parse_moment(text: str, first: float, last: float, shown: float | None = None) -> float:
    """Unix seconds: ISO 8601, `-10m` before what is `shown` (else before `last`), or a time of day.

    A time of day is the one in the range from `first` to `last`: of several the one nearest to `shown` (else the first
    one), of none in the range that of one of its days. ValueError when it is none of these.
    """
    text = text.strip()
    if text.startswith("-"):
        return (last if shown is None else shown) - parse_duration(text[1:])
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        try:
            return datetime.fromisoformat(text).astimezone().timestamp()
        except ValueError as problem:
            raise ValueError(f"{text!r} is no time (like 2026-11-29T14:03, 14:03 or -10m)") from problem
    try:
        wanted = time_of_day(int(clock[1]), int(clock[2]), int(clock[3] or 0))
        found = _on_days_near((first, last, first if shown is None else shown), wanted)
    except (ValueError, OverflowError, OSError) as problem:
        raise ValueError(f"{text!r} is no time of day") from problem
    # A recording that began at 14:03:20 has its 14:03.
    lasts = 1 if clock[3] else 60
    within = [at for at in found if first - lasts < at <= last]
    if within:
        return within[0] if shown is None else min(within, key=lambda at: abs(at - shown))
    days = {datetime.fromtimestamp(end).date() for end in (first, last)}
    of_its_days = [at for at in found if datetime.fromtimestamp(at).date() in days]
    return min(of_its_days, key=lambda at: max(first - at, at - last))


def last_day(now: float) -> tuple[float, float]:
    """The range in which every time of day is once, now or before."""
    return now - 86400 + 60, now


def _on_days_near(moments: Iterable[float], wanted: time_of_day) -> list[float]:
    """That time of the days of these moments and of those before and after, oldest first, in the local zone."""
    days = {datetime.fromtimestamp(at).date() + timedelta(days=by) for at in moments for by in (-1, 0, 1)}
    return [datetime.combine(day, wanted).timestamp() for day in sorted(days)]
