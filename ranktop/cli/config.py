"""`ranktop config print|validate|path`: the configuration in force, and where it comes from."""

from __future__ import annotations

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
    click.echo("\n".join(_toml(msgspec.to_builtins(settings), origins)))
    return OK


@config.command()
def validate() -> int:
    """Check every layer. Exit 2 and one line when something is wrong."""
    settings = Settings()
    for layer in layers(os.environ):
        settings = apply(settings, layer)
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
            text = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else value
            origin = origins.get((section, key))
            yield f"{key} = {text}" + (f"  # {origin}" if origin else "")
        yield ""
