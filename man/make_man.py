"""Writes man/ranktop.1 from the commands themselves: `make man`. man(7) of Linux for the macros."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

import ranktop
from ranktop.cli.main import COMMANDS, cli

PAGE = Path(__file__).with_name("ranktop.1")

_EXIT = {
    "0": "Nothing at breach or worse.",
    "1": "A breach, or a gate of compare that fails.",
    "2": "Wrong usage.",
    "3": "Nothing to look at.",
    "130": "Interrupted.",
}
_ENVIRONMENT = {
    "RANKTOP_API_KEY, RANKTOP_API_KEY_FILE": "The key for servers that need one; never a flag, as ps would show it.",
    "RANKTOP_ADMIN_API_KEY": "The server's admin key; with it SGLang tells which storage is attached.",
    "RANKTOP_PROMETHEUS_TOKEN, RANKTOP_PROMETHEUS_PASSWORD": "For fleet and record --from-prometheus.",
    "RANKTOP_SECTION_NAME": "Any value of the configuration, such as RANKTOP_SCREEN_THEME=day.",
    "NO_COLOR": "No colours.",
}
_FILES = {
    "/etc/ranktop/config.toml, ~/.config/ranktop/config.toml": "The configuration; ranktop config print shows it.",
    "~/.local/state/ranktop/launches.json": "Launches that were seen, for what a restart changed.",
    "*.rtop": "Recordings.",
}


def page() -> str:
    """The whole page."""
    return "\n".join([*_head(), *_commands(), *_tail()]) + "\n"


def _head() -> Iterator[str]:
    yield f'.TH RANKTOP 1 "" "ranktop {ranktop.__version__}" "User Commands"'
    yield ".nh\n.ad l"
    yield ".SH NAME"
    yield "ranktop \\- watch an SGLang node, rank by rank, against its plan"
    yield ".SH SYNOPSIS"
    yield '.B ranktop\n.RI [ COMMAND ] " " [ OPTIONS ]'
    yield ".SH DESCRIPTION"
    yield _text(cli.help or "")
    yield ".PP"
    yield _text("Without a command it is `ranktop watch`. It reads and changes nothing.")
    yield _pairs((("--version", "Its version, and the SGLang versions planned exactly."),))
    yield ".SH COMMANDS"


def _commands() -> Iterator[str]:
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        yield from _command(f"ranktop {name}", command)


def _command(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=click.Context(cli))
    yield f".SS {_text(' '.join([name, *command.collect_usage_pieces(context)]))}"
    for paragraph in re.split(r"\n\s*\n", (command.help or "").strip()):
        if paragraph.lstrip().startswith("\b"):
            lines = [line.strip() for line in paragraph.splitlines() if line.strip("\b ")]
            yield "\n".join([".PP", ".nf", ".RS", *map(_text, lines), ".RE", ".fi"])
        else:
            yield f".PP\n{_text(' '.join(paragraph.split()))}"
    records = [record for param in command.get_params(context) if (record := param.get_help_record(context))]
    yield _pairs((names, " ".join(text.split())) for names, text in records if not names.endswith("--help") and text)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from _command(f"{name} {inner}", found)


def _tail() -> Iterator[str]:
    yield ".SH EXIT STATUS"
    yield _pairs(_EXIT.items())
    yield ".SH ENVIRONMENT"
    yield _pairs(_ENVIRONMENT.items())
    yield ".SH FILES"
    yield _pairs(_FILES.items())


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f".TP\n.B {_text(name)}\n{_text(text)}" for name, text in pairs)


def _text(text: str) -> str:
    """Text that roff does not take for its own: no escapes, and no line that begins like a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
