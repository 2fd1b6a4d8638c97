"""`server_args=...` of a log: a dataclass repr until 0.5.2x, a dict repr in 0.5.23. Read, never evaluated."""

from __future__ import annotations

import ast
import re
from typing import Any

from collectors.json_values import within_64_bits
from collectors.secrets import without_secrets

_ITEM = re.compile(r"""(?:^|[\s,({])(?:'(?P<key>\w+)': |(?P<name>\w+)=)""")
_MAX_ITEMS = 4096
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


def parse_server_args(text: str) -> dict[str, Any]:
    """Arguments of the repr in `text`, secrets dropped. A value that is no literal (an enum) stays text.

    A line cut short gives the arguments before the cut.
    """
    found: dict[str, Any] = {}
    body = text.partition("(" if text.lstrip().startswith("ServerArgs") else "{")[2]
    position = 0
    while len(found) < _MAX_ITEMS:
        item = _ITEM.match(body, position)
        if item is None:
            break
        end = _value_end(body, item.end())
        if end == len(body):
            break
        found[item["key"] or item["name"]] = _literal(body[item.end() : end])
        if body[end : end + 1] != ",":
            break
        position = end + 1
    safe: dict[str, Any] = within_64_bits(without_secrets(found))
    return safe


def _value_end(text: str, start: int) -> int:
    """Index of the comma or closing bracket that ends the value at `start`."""
    open_brackets: list[str] = []
    position = start
    while position < len(text):
        letter = text[position]
        if letter in "'\"":
            position = _quote_end(text, position)
        elif letter in _CLOSING:
            open_brackets.append(_CLOSING[letter])
        elif open_brackets and letter == open_brackets[-1]:
            open_brackets.pop()
        elif not open_brackets and letter in ",)}":
            return position
        position += 1
    return len(text)


def _quote_end(text: str, start: int) -> int:
    """Index of the quote that closes the one at `start`, the end of the text when none does."""
    position = start + 1
    while position < len(text) and text[position] != text[start]:
        position += 2 if text[position] == "\\" else 1
    return position


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
