"""The few signs that are no letters, as Unicode and as ASCII."""

from __future__ import annotations

import locale
import os
from typing import NamedTuple


class Glyphs(NamedTuple):
    """`eighths` fills a bar cell in steps; ASCII knows only full and empty."""

    eighths: str
    empty: str
    parts: str
    """Fills of a bar's parts beside each other, so that colour is never alone."""
    tick: str
    rule: str
    missing: str
    more: str
    """Behind text that is cut. Not `~`, which stands before an aged value."""
    fold: str
    """Before a finding that the one above explains."""
    pointer: str
    """Before the row of the cursor."""
    marks: dict[str, str]
    """A sign for every severity, so that colour is never alone."""


UNICODE = Glyphs(
    eighths=" ▏▎▍▌▋▊▉█",
    empty="·",
    parts="█▓▒░",
    tick="│",
    rule="─",
    missing="–",
    more="…",
    fold="└ ",
    pointer="›",
    marks={"ok": "●", "info": "○", "warn": "▲", "breach": "■", "critical": "✖"},
)
ASCII = Glyphs(
    eighths=" #",
    empty=".",
    parts="#=+-",
    tick="|",
    rule="-",
    missing="-",
    more="$",
    fold="` ",
    pointer=">",
    marks={"ok": "o", "info": "i", "warn": "!", "breach": "#", "critical": "X"},
)


def choose(ascii_only: bool) -> Glyphs:
    """ASCII when asked for, for `TERM=dumb`, and where the locale cannot write UTF-8."""
    utf8 = "utf" in locale.getpreferredencoding(False).lower() and _locale_name() not in ("C", "POSIX")
    return ASCII if ascii_only or not utf8 or os.environ.get("TERM") == "dumb" else UNICODE


def _locale_name() -> str:
    """As the user set it, empty where he did not. Python takes UTF-8 for the C locale, and with LANG=C sets LC_CTYPE to
    C.UTF-8 itself (PEP 538, PEP 540)."""
    names = (os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    both, kind, language = names
    return both or (kind if kind != "C.UTF-8" else "") or language


def bar(glyphs: Glyphs, share: float | None, cells: int, tick_share: float | None = None) -> tuple[str, str]:
    """A bar as two texts: the filled part, and the empty part with the plan as a tick.

    `share` and `tick_share` are 0..1 and are clamped; a missing share is an empty bar.
    """
    steps = len(glyphs.eighths) - 1
    total = round(max(0.0, min(1.0, share or 0.0)) * cells * steps)
    full, part = divmod(total, steps)
    filled = glyphs.eighths[-1] * full + (glyphs.eighths[part] if part else "")
    rest = list(glyphs.empty * (cells - len(filled)))
    if tick_share is not None:
        at = min(cells - 1, round(max(0.0, min(1.0, tick_share)) * cells))
        if at >= len(filled) and rest:
            rest[at - len(filled)] = glyphs.tick
    return filled, "".join(rest)
