"""`ranktop config print|validate|path`: the configuration in force, and where it comes from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from ranktop.cli.errors import OK
from ranktop.cli.settings import SYSTEM_FILE, Settings, apply, layers, user_file


@click.group()
def config() -> None:
    """The layered configuration: flags over environment over user file over system file over built-in values."""


@config.command("print")
def print_command() -> int:
    """Print every value in force as TOML, with its origin where it was set."""
    settings, origins = Settings(), dict[tuple[str, str], str]()
    for layer in layers(os.environ):
        settings = apply(settings, layer)
        origins |= {(section, key): layer.origin for section, values in layer.values.items() for key in values}
    from ranktop.cli.screen_choice import check_screen, every_action

    check_screen(settings)
    document: dict[str, dict[str, Any]] = msgspec.to_builtins(settings)
    document["keys"] = {action.name: action.keys for action in every_action()} | settings.keys
    click.echo("\n".join(_toml(document, origins)))
    return OK


@config.command()
def validate() -> int:
    """Check every layer. Exit 2 and one line when something is wrong."""
    from ranktop.cli.screen_choice import check_screen

    settings = Settings()
    for layer in layers(os.environ):
        settings = apply(settings, layer)
        check_screen(settings, layer.origin)
        click.echo(f"{layer.origin}: ok")
    return OK


@config.command()
def path() -> int:
    """Name the files that are read, strongest last."""
    for file in (SYSTEM_FILE, user_file(os.environ)):
        click.echo(f"{file}{'' if file.is_file() else '  (not there)'}")
    return OK


def _toml(document: dict[str, dict[str, Any]], origins: dict[tuple[str, str], str]) -> Iterator[str]:
    for section, values in document.items():
        yield f"[{section}]"
        for key, value in values.items():
            if value is None:
                yield f"# {key} is not set"
                continue
            text = json.dumps(value) if isinstance(value, str | bool | list | tuple) else value
            origin = origins.get((section, key))
            yield f"{key} = {text}" + (f"  # {origin}" if origin else "")
        yield ""
