"""`ranktop explain`: the rule behind a finding's code, with the thresholds in force."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from ranktop.cli.errors import UsageProblem
from ranktop.cli.settings import load_settings
from ranktop.folding import folded
from ranktop.reconcile.catalogue import Entry, entries, in_force, sections
from ranktop.reconcile.thresholds import Thresholds

_WIDTH = 80


@click.command()
@click.argument("code", required=False, metavar="[CODE]")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def explain(code: str | None, as_json: bool) -> int:
    """Say what a finding's CODE means and when it fires. Without CODE, list all codes."""
    thresholds = load_settings().thresholds
    chosen = entries() if code is None else {(known := known_code(code)): entries()[known]}
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(explain_document(chosen, thresholds)), indent=2).decode())
    else:
        click.echo(list_text() if code is None else explain_text(known_code(code), thresholds))
    return 0


def known_code(code: str, asked: str = "explain") -> str:
    """The code as the catalogue spells it. UsageProblem with the nearest one for what is none."""
    wanted = code.strip().upper().replace("_", "-")
    if wanted in entries():
        return wanted
    near = difflib.get_close_matches(wanted, entries(), n=3, cutoff=0.5)
    inside = [known for known in entries() if wanted and wanted in known]
    guesses = list(dict.fromkeys([*inside, *near]))[:3]
    hint = f"did you mean {', '.join(guesses)}?" if guesses else "`ranktop explain` lists them"
    raise UsageProblem(f"{asked}: {code[:60]!r} is no finding's code ({hint})")


def explain_document(chosen: dict[str, Entry], thresholds: Thresholds) -> dict[str, Any]:
    """`explain --json`."""
    return {
        "schema": 1,
        "codes": [
            msgspec.to_builtins(entry) | {"code": code, "thresholds": in_force(entry, thresholds)}
            for code, entry in chosen.items()
        ],
    }


def list_text() -> str:
    """All codes by subject, each with the beginning of its rule."""
    return "\n".join(_list())


def explain_text(code: str, thresholds: Thresholds) -> str:
    """One entry for a person."""
    return "\n".join(_entry(code, entries()[code], thresholds))


def _list() -> Iterator[str]:
    for number, section in enumerate(sections()):
        if number:
            yield ""
        yield section.title
        for code, entry in section.codes.items():
            start = f"  {code:<26} {entry.severity[-1]:<9}"
            yield start + textwrap.shorten(entry.rule, _WIDTH - len(start), placeholder="...")


def _entry(code: str, entry: Entry, thresholds: Thresholds) -> Iterator[str]:
    yield f"{code}  ({' or '.join(entry.severity)})"
    yield ""
    yield from folded(entry.rule, _WIDTH)
    values = in_force(entry, thresholds)
    if values:
        yield ""
        yield "thresholds in force (section [thresholds] of `ranktop config path`):"
    defaults = Thresholds()
    for name, value in values.items():
        default = getattr(defaults, name)
        changed = "" if value == default else f"  (default {_value(default)})"
        yield f"  {name} = {_value(value)}{changed}"
    yield ""
    for label, text in (("inputs", entry.inputs), ("sources", entry.sources), ("example", entry.example)):
        yield from folded(text, _WIDTH, initial_indent=f"{label:<9}", subsequent_indent=" " * 9)


def _value(value: float | int | None) -> str:
    return "not set" if value is None else f"{value:.10g}"
