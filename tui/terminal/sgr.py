"""Styles as terminals are told of them (SGR of ECMA-48): what parameters set, the shortest way between two."""

from __future__ import annotations

import functools
from typing import NamedTuple


class Style(NamedTuple):
    """What was set since the last reset, as its own parameters."""

    attributes: tuple[str, ...] = ()
    foreground: str = ""
    background: str = ""


PLAIN = Style()


@functools.lru_cache(maxsize=1024)
def styled(style: Style, parameters: str) -> Style:
    """The style once these SGR parameters were read."""
    numbers = parameters.split(";")
    place = 0
    while place < len(numbers):
        number = numbers[place]
        place += 1
        if number in ("", "0"):
            style = PLAIN
            continue
        value = int(number)
        if value in (38, 48):
            length = 4 if numbers[place : place + 1] == ["2"] else 2
            color = ";".join(numbers[place - 1 : place + length])
            place += length
            style = style._replace(foreground=color) if value == 38 else style._replace(background=color)
        elif 30 <= value <= 39 or 90 <= value <= 97:
            style = style._replace(foreground=number)
        elif 40 <= value <= 49 or 100 <= value <= 107:
            style = style._replace(background=number)
        elif number not in style.attributes:
            style = style._replace(attributes=tuple(sorted((*style.attributes, number))))
    return style


@functools.lru_cache(maxsize=4096)
def change(shown: Style, wanted: Style) -> str:
    """The sequence from one style to the other; empty when they are the same. Only a reset takes an attribute off."""
    if shown == wanted:
        return ""
    parts: list[str] = []
    lost = set(shown.attributes) - set(wanted.attributes)
    if lost or (shown.foreground and not wanted.foreground) or (shown.background and not wanted.background):
        parts.append("0")
        shown = PLAIN
    parts += [each for each in wanted.attributes if each not in shown.attributes]
    parts += [wanted.foreground] if wanted.foreground != shown.foreground else []
    parts += [wanted.background] if wanted.background != shown.background else []
    return "\x1b[m" if parts == ["0"] else f"\x1b[{';'.join(parts)}m"
