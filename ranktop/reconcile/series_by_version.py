"""Which metric families each SGLang release has, read from its wheels: a missing series is 0 or impossible.

`series_by_version.json` is written by `tests/contract/check.py`; only the families of `families.py` stand in it.
"""

from __future__ import annotations

import functools
import json
import re
from importlib.resources import files

_NUMBERS = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def has_family(name: str, version: str | None) -> bool | None:
    """Whether that SGLang version exports the family. None when the version is unknown or older than the table.

    A version newer than the table is taken to be like its newest one.
    """
    row = nearest(version)
    return None if row is None else name in _table()[row]


@functools.lru_cache(maxsize=64)
def nearest(version: str | None) -> str | None:
    """The newest version of the table that is not newer than `version`; None for an older or unreadable one."""
    wanted = _numbers(version or "")
    if wanted is None:
        return None
    known = [(numbers, name) for name in _table() if (numbers := _numbers(name)) is not None and numbers <= wanted]
    return max(known)[1] if known else None


def missing(version: str | None, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the families that this version does not export: what a panel has to say it cannot show."""
    return tuple(name for name in names if has_family(name, version) is False)


def is_before(version: str | None, other: str) -> bool | None:
    """Whether `version` is older than `other`. None when it cannot be read."""
    ours, theirs = _numbers(version or ""), _numbers(other)
    return None if ours is None or theirs is None else ours < theirs


@functools.cache
def _numbers(version: str) -> tuple[int, ...] | None:
    match = _NUMBERS.match(version)
    return tuple(map(int, match.groups())) if match else None


@functools.cache
def _table() -> dict[str, frozenset[str]]:
    raw = json.loads((files("ranktop.reconcile") / "series_by_version.json").read_text())
    return {
        version: frozenset(name for name, versions in raw["families"].items() if version in versions)
        for version in raw["versions"]
    }
