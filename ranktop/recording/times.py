"""Times and durations as people type them (contracts.md): `90`, `15m`, `2h`; ISO 8601, `14:03`, `-10m`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)?")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(k|M|G|Ki|Mi|Gi)?B?")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


def parse_duration(text: str) -> float:
    """Seconds. ValueError when it is no duration."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no duration (like 90, 90s, 15m, 2h)")
    return float(found[1]) * _SECONDS[found[2] or ""]


def parse_size(text: str) -> int:
    """Bytes; `M` is 10^6 and `Mi` 2^20. ValueError when it is no size."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no size (like 500M, 2G, 512Mi)")
    return int(float(found[1]) * _BYTES[found[2] or ""])


def parse_moment(text: str, first: float, last: float) -> float:
    """Unix seconds: ISO 8601, `-10m` before `last`, or the first such time of day not before `first`.

    ValueError when it is none of these.
    """
    text = text.strip()
    if text.startswith("-"):
        return last - parse_duration(text[1:])
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        try:
            return datetime.fromisoformat(text).astimezone().timestamp()
        except ValueError as problem:
            raise ValueError(f"{text!r} is no time (like 2026-11-29T14:03, 14:03 or -10m)") from problem
    day = datetime.fromtimestamp(first).astimezone()
    try:
        wanted = day.replace(hour=int(clock[1]), minute=int(clock[2]), second=int(clock[3] or 0), microsecond=0)
    except ValueError as problem:
        raise ValueError(f"{text!r} is no time of day") from problem
    # A minute's grace: a recording that began at 14:03:20 has its 14:03.
    if wanted.timestamp() < first - 60:
        wanted += timedelta(days=1)
    return wanted.timestamp()
