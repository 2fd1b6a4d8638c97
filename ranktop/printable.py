"""Text from outside, fit for a terminal, a pipe and a file."""

from __future__ import annotations

import json


def printable(text: str) -> str:
    """The text with every character that is not printable, but for line ends, as a JSON escape.

    Controls, bidi marks and zero-width characters can neither drive a terminal nor hide anything. JSON stays JSON.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter == "\n" or letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)


def one_line(text: str) -> str:
    """The same as one line."""
    return printable(" ".join(text.split()))
