"""Splits pasted launch text into words, as a shell would, but tolerant of what people paste."""

from __future__ import annotations

MAX_TEXT_CHARS = 1 << 20
"""A launch line is never longer; more is somebody's file by mistake."""


def split_words(text: str) -> list[str]:
    """Words of a pasted command: quotes, comments, line continuations; an unquoted `{...}` stays one word, verbatim.

    A process title is its words joined by spaces with the quotes already gone, so JSON in it is unquoted.
    An unclosed quote ends at the end of the text.
    """
    words: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        if character.isspace():
            position += 1
        elif (character == "\\" and not text[position + 1 : _line_end(text, position)].strip()) or character == "#":
            position = _line_end(text, position)
        else:
            word, position = _word(text, position)
            words.append(word)
    return words


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _word(text: str, position: int) -> tuple[str, int]:
    parts: list[str] = []
    while position < len(text):
        character = text[position]
        if character.isspace():
            break
        if character in "'\"":
            part, position = _quoted(text, position)
            parts.append(part)
        elif character == "{":
            end = _brace_end(text, position)
            parts.append(text[position:end])
            position = end
        elif character == "\\" and position + 1 < len(text):
            if text[position + 1] == "\n":
                break
            parts.append(text[position + 1])
            position += 2
        else:
            parts.append(character)
            position += 1
    return "".join(parts), position


def _quoted(text: str, position: int) -> tuple[str, int]:
    quote = text[position]
    parts: list[str] = []
    position += 1
    while position < len(text) and text[position] != quote:
        if quote == '"' and text[position] == "\\" and text[position + 1 : position + 2] in ('"', "\\", "$", "`"):
            position += 1
        parts.append(text[position])
        position += 1
    return "".join(parts), position + 1


def _brace_end(text: str, position: int) -> int:
    """One past the brace that closes the one at `position`; the end of the word when none does."""
    depth = 0
    for index in range(position, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return index + 1
    end = position
    while end < len(text) and not text[end].isspace():
        end += 1
    return end
