"""The configuration: built-in values, then /etc, then the user's file, then the environment, then flags."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ranktop.cli.errors import UsageProblem
from ranktop.reconcile.thresholds import Thresholds

SYSTEM_FILE = Path("/etc/ranktop/config.toml")
ENVIRONMENT_PREFIX = "RANKTOP_"


class Cadence(Struct, frozen=True, forbid_unknown_fields=True):
    """How often what is read."""

    interval_seconds: float = 1.0
    """Host, GPUs, NUMA."""
    scrape_seconds: float = 5.0
    """Metrics pages; never closer than 100 times the response time whatever is set."""


class ScreenSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How the screen looks."""

    theme: str = "night"
    """A packaged theme or a TOML file."""
    ascii: bool = False
    mouse: bool = True
    columns: tuple[str, ...] = ()
    """Of the rank grid, in this order, as `name`, `name:cells` or `name:cells:weight`; all if empty. Where they do not
    fit, the lightest go first; `name:cells+` takes what is left."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be configured, by section."""

    cadence: Cadence = Cadence()
    screen: ScreenSettings = ScreenSettings()
    thresholds: Thresholds = Thresholds()
    keys: dict[str, str] = {}
    """Keys by the names of actions, several separated by commas. Which there are, the screen knows."""


class Layer(Struct, frozen=True):
    """Where values came from, and what was set there."""

    origin: str
    values: dict[str, Any]


def user_file(environment: Mapping[str, str]) -> Path:
    """`$XDG_CONFIG_HOME/ranktop/config.toml`, by default below ~/.config."""
    base = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME", "/")) / ".config")
    return Path(base) / "ranktop" / "config.toml"


def load_settings(environment: Mapping[str, str] | None = None, system_file: Path = SYSTEM_FILE) -> Settings:
    """The settings in force. Raises UsageProblem that names file, key and what is accepted."""
    settings = Settings()
    for layer in layers(os.environ if environment is None else environment, system_file):
        settings = apply(settings, layer)
    return settings


def layers(environment: Mapping[str, str], system_file: Path = SYSTEM_FILE) -> list[Layer]:
    """The layers that exist, weakest first."""
    files = [system_file, user_file(environment)]
    found = [Layer(str(path), read_file(path)) for path in files if path.is_file()]
    from_environment = _environment_values(environment)
    return [*found, Layer("environment", from_environment)] if from_environment else found


def read_file(path: Path) -> dict[str, Any]:
    """A configuration file as it stands."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise UsageProblem(f"{path}: cannot be read as TOML: {problem}") from problem


def apply(settings: Settings, layer: Layer) -> Settings:
    """The settings with a layer's values over them. Every value is checked, unknown keys are errors."""
    merged: dict[str, Any] = msgspec.to_builtins(settings)
    for section, values in layer.values.items():
        if section not in merged:
            raise UsageProblem(f"{layer.origin}: [{section}] is no section{_suggestion(section, merged)}")
        if not isinstance(values, dict):
            raise UsageProblem(f"{layer.origin}: {section} must be a section, like [{section}]")
        for key, value in values.items():
            if section != "keys" and key not in merged[section]:
                raise UsageProblem(f"{layer.origin}: {section}.{key} is no key{_suggestion(key, merged[section])}")
            merged[section][key] = value
    try:
        return msgspec.convert(merged, Settings, strict=layer.origin != "environment")
    except msgspec.ValidationError as problem:
        raise UsageProblem(f"{layer.origin}: {problem}") from problem


def _environment_values(environment: Mapping[str, str]) -> dict[str, Any]:
    """`RANKTOP_SCREEN_THEME=day` is `theme = "day"` of [screen]. Other variables of that prefix have their own use."""
    values: dict[str, Any] = {}
    for section in Settings.__struct_fields__:
        prefix = f"{ENVIRONMENT_PREFIX}{section.upper()}_"
        found: dict[str, Any] = {
            name[len(prefix) :].lower(): text for name, text in environment.items() if name.startswith(prefix)
        }
        if "columns" in found:
            found["columns"] = [key.strip() for key in found["columns"].split(",") if key.strip()]
        if found:
            values[section] = found
    return values


def _suggestion(word: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else f" (there are: {', '.join(known)})"
