"""Every code that a finding can carry, in words. `python -m ranktop.reconcile.catalogue` prints docs/findings.md."""

from __future__ import annotations

import sys
import tomllib
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

from ranktop.finding import Severity
from ranktop.folding import folded
from ranktop.reconcile.thresholds import Thresholds


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """One code. `severity` lists those it can have; `thresholds` are fields of `Thresholds`."""

    severity: tuple[Severity, ...]
    rule: str
    inputs: str
    sources: str
    example: str
    thresholds: tuple[str, ...] = ()


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """The codes of one subject, in the order of their file."""

    title: str
    codes: dict[str, Entry]


@cache
def sections() -> tuple[Section, ...]:
    """All sections, in order."""
    folder = files("ranktop.reconcile") / "codes"
    texts = sorted((path.name, path.read_text("utf-8")) for path in folder.iterdir() if path.name.endswith(".toml"))
    return tuple(msgspec.convert(tomllib.loads(text), Section) for _, text in texts)


@cache
def entries() -> dict[str, Entry]:
    """Every code with its entry."""
    return {code: entry for section in sections() for code, entry in section.codes.items()}


def in_force(entry: Entry, thresholds: Thresholds) -> dict[str, float | int | None]:
    """The values of the thresholds that this rule compares with."""
    return {name: getattr(thresholds, name) for name in entry.thresholds}


def markdown() -> str:
    """The catalogue as a page, with the default thresholds."""
    parts = [
        "# Findings\n\nEvery code that `ranktop` can report. Made by `python -m ranktop.reconcile.catalogue`; "
        "`ranktop explain CODE` prints an entry with the thresholds that are in force.\n"
    ]
    defaults = Thresholds()
    for section in sections():
        parts.append(f"## {section.title}\n")
        for code, entry in section.codes.items():
            rule = "\n".join(folded(entry.rule, 118))
            parts.append(f"### {code}\n\n{rule}\n")
            facts = [f"- Severity: {', '.join(entry.severity)}"]
            values = in_force(entry, defaults)
            if values:
                told = (f"`{name}` = {'not set' if value is None else f'{value:g}'}" for name, value in values.items())
                facts.append(f"- Thresholds: {', '.join(told)}")
            facts += [f"- Inputs: {entry.inputs}", f"- Sources: {entry.sources}", f"- Example: {entry.example}"]
            parts.append("\n".join(facts) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(markdown())
