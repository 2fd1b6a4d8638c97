"""A fast reader of Prometheus' text format: name filter first, then labels from a cache, then the value.

The format: prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4. Accepts SGLang's `sglang:` and the
`sglang_` that an OpenMetrics scrape or a gateway makes of it; names always come out with the colon.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import NamedTuple

from msgspec import Struct

from collectors.secrets import is_secret
from ranktop.sample import SeriesKey

MAX_LINE_CHARACTERS = 16_384
MAX_CACHED_KEYS = 50_000

# Values from here on are a "not available" of DCGM's (INT64_BLANK, 2**63 - 16 and its neighbours), not a count.
_BLANK = 2.0**63

_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
# Up to the brace that ends a label set, which is none within quotes.
_LABEL_SET = re.compile(r'((?:[^"}]|"(?:[^"\\]|\\.)*")*)\}')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", '"': '"', "\\": "\\"}


class Exposition(Struct, frozen=True):
    """What one page holds of the wanted names. NaN, infinities and blanks are left out: they are no sample."""

    keys: tuple[SeriesKey, ...]
    """The same object as of the page before when the series are the same."""
    values: tuple[float, ...]
    """One for each of `keys`."""
    families: int
    """Families on the page, by their TYPE lines."""
    wanted_families: int
    bad_lines: int
    """Lines of wanted names that could not be read."""


class _Layout(NamedTuple):
    """A page without its numbers. Of one on which a line could not be read, or has a timestamp, some `begins` are
    missing, so that no page is like it."""

    begins: Sequence[str] = ()
    """By line: what it begins with, and what decides on it."""
    whole: Sequence[int] = ()
    """Lines that are nothing else."""
    numbers: Sequence[tuple[int, int]] = ()
    """Lines of wanted names, and where their number begins."""
    are_samples: Sequence[bool] = ()
    """Of each of these."""
    families: int = 0
    wanted_families: int = 0


class ExpositionParser:
    """Parser of successive pages of one server.

    Between pages it keeps where the page before had which series, as mostly the next one differs in its numbers alone,
    and the labels of lines that it has seen: MAX_CACHED_KEYS, or twice those of the last page.
    """

    def __init__(self, wanted: Iterable[str]) -> None:
        names = frozenset(wanted)
        self._spellings = {name: name for name in names} | {_underscored(name): name for name in names}
        self._family_names = {spelling for name in self._spellings for spelling in _family_spellings(name)}
        self._keys: dict[str, SeriesKey] = {}
        self._newest: tuple[SeriesKey, ...] = ()
        self._layout = _Layout()

    def parse(self, text: str) -> Exposition:
        """Read one page. Never raises: a line that cannot be read is counted and left out."""
        lines = text.split("\n")
        values = self._numbers(lines)
        if values is None:
            return self._parse(lines)
        return Exposition(self._newest, values, self._layout.families, self._layout.wanted_families, 0)

    def _numbers(self, lines: Sequence[str]) -> tuple[float, ...] | None:
        """The values of a page that has the layout of the one before; None for one that has another."""
        layout = self._layout
        if len(lines) != len(layout.begins) or not all(map(str.startswith, lines, layout.begins)):
            return None
        if any(lines[line] != layout.begins[line] for line in layout.whole):
            return None
        try:
            numbers = [float(lines[line][at:]) for line, at in layout.numbers]
        except ValueError:
            return None
        are_samples = [-_BLANK < number < _BLANK for number in numbers]
        return tuple(compress(numbers, are_samples)) if are_samples == layout.are_samples else None

    def _parse(self, lines: Sequence[str]) -> Exposition:
        spellings, keys = self._spellings, self._keys
        found: list[SeriesKey] = []
        values: list[float] = []
        begins: list[str] = []
        whole: list[int] = []
        places: list[tuple[int, int]] = []
        are_samples: list[bool] = []
        families = wanted_families = bad_lines = 0
        unwanted = "\n"
        for line in lines:
            # Buckets of families that nobody asked for are most of a page, and they come in runs.
            if line.startswith(unwanted):
                begins.append(unwanted)
                continue
            if line.startswith("#"):
                whole.append(len(begins))
                begins.append(line)
                if line.startswith("# TYPE "):
                    families += 1
                    wanted_families += line.split(" ", 3)[2] in self._family_names
                continue
            at = line.rfind(" ") + 1
            prefix, number = line[:at], line[at:]
            key = keys.get(prefix)
            if key is None:
                head, brace, _ = line.partition("{")
                if brace and head not in spellings:
                    unwanted = head + brace
                    begins.append(unwanted)
                    continue
                if not brace and (name := head.partition(" ")[0]) not in spellings:
                    if name == line:
                        whole.append(len(begins))
                    begins.append(line[: len(name) + 1])
                    continue
                key, number = self._learn(line, prefix)
                if key is None:
                    bad_lines += 1
                    continue
            try:
                value = float(number)
            except ValueError:
                bad_lines += 1
                continue
            if prefix in keys:
                places.append((len(begins), at))
                begins.append(prefix)
                are_samples.append(-_BLANK < value < _BLANK)
            if -_BLANK < value < _BLANK:  # which NaN is not
                found.append(key)
                values.append(value)
        on_page = tuple(found)
        if on_page != self._newest:
            self._newest = on_page
        # The strings of the cache, not equal ones of this page: they are most of what a layout takes.
        own = dict(zip(keys, keys, strict=True))
        begins = [own.get(begin, begin) for begin in begins]
        self._layout = _Layout(begins, whole, places, are_samples, families, wanted_families)
        # A page of many ranks may alone have more lines than that. Beyond, most are of pages that are gone.
        if len(keys) > max(MAX_CACHED_KEYS, 2 * len(on_page)):
            keys.clear()
        return Exposition(self._newest, tuple(values), families, wanted_families, bad_lines)

    def _learn(self, line: str, prefix: str) -> tuple[SeriesKey | None, str]:
        """Key and number of a line seen for the first time, or of one with a timestamp behind its value. `prefix` is
        all up to its last word."""
        if len(line) > MAX_LINE_CHARACTERS:
            return None, ""
        head, brace, rest = line.partition("{")
        if brace:
            label_set = _LABEL_SET.match(rest)
            labels = _labels(label_set[1]) if label_set is not None else None
            tail = rest[label_set.end() :].split() if label_set is not None else []
        else:
            head, *tail = line.split()
            labels = ()
        if labels is None or not 1 <= len(tail) <= 2:
            return None, ""
        key = SeriesKey(self._spellings[head], labels)
        if len(tail) == 1:
            self._keys[prefix] = key
        return key, tail[0]


def _labels(text: str) -> tuple[tuple[str, str], ...] | None:
    """`a="b",c="d"` as pairs in the page's order, secrets dropped; None when it is not that."""
    pairs: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        match = _LABEL.match(text, position)
        if match is None:
            return None
        value = match[2]
        if not is_secret(match[1]):
            pairs.append((match[1], _ESCAPE.sub(_unescape, value) if "\\" in value else value))
        position = match.end()
    return tuple(pairs)


def _unescape(match: re.Match[str]) -> str:
    return _ESCAPED.get(match[1], match[0])


def _underscored(name: str) -> str:
    return name.replace(":", "_")


def _family_spellings(series_name: str) -> tuple[str, ...]:
    """Names under which the TYPE line of a sample line's family may stand."""
    return tuple(
        series_name.removesuffix(suffix)
        for suffix in ("", "_total", "_bucket", "_sum", "_count")
        if series_name.endswith(suffix)
    )
