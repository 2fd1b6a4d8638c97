"""The configuration: layers, and errors that say where and what instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranktop.cli.errors import UsageProblem
from ranktop.cli.settings import load_settings, user_file
from support.command import ranktop


def settings_in(tmp_path: Path, system: str = "", user: str = "", **environment: str) -> object:
    system_file = tmp_path / "etc.toml"
    system_file.write_text(system)
    own = user_file({"HOME": str(tmp_path)})
    own.parent.mkdir(parents=True)
    own.write_text(user)
    return load_settings({"HOME": str(tmp_path), **environment}, system_file)


def test_the_stronger_layer_wins(tmp_path: Path) -> None:
    settings = settings_in(
        tmp_path,
        system='[screen]\ntheme = "day"\nascii = true\n[cadence]\nscrape_seconds = 10.0',
        user='[screen]\ntheme = "mine.toml"\n[thresholds]\nnuma_far_percent = 7.5',
        RANKTOP_CADENCE_SCRAPE_SECONDS="20",
        RANKTOP_API_KEY="not a setting",
    )
    assert settings.screen.theme == "mine.toml"  # type: ignore[attr-defined]
    assert settings.screen.ascii is True  # type: ignore[attr-defined]
    assert settings.cadence.scrape_seconds == 20  # type: ignore[attr-defined]
    assert settings.thresholds.numa_far_percent == 7.5  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("user", "says"),
    [
        ("[screeen]\n", r"\[screeen\] is no section \(did you mean screen\?\)"),
        ("[screen]\nthem = 'x'", r"screen.them is no key \(did you mean theme\?\)"),
        ("[screen]\nascii = 'yes'", "Expected `bool`, got `str` - at `\\$.screen.ascii`"),
        ("screen = 3", "screen must be a section"),
        ("[screen", "cannot be read as TOML"),
    ],
)
def test_an_error_names_file_key_and_remedy(tmp_path: Path, user: str, says: str) -> None:
    with pytest.raises(UsageProblem, match=says):
        settings_in(tmp_path, user=user)


def test_the_command_prints_and_validates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("RANKTOP_SCREEN_THEME", "day")
    printed = ranktop("config", "print")
    assert printed.returncode == 0
    assert 'theme = "day"  # environment' in printed.stdout
    assert "headroom_critical_seconds = 300.0" in printed.stdout
    assert ranktop("config", "validate").stdout == "environment: ok\n"
    assert str(tmp_path) in ranktop("config", "path").stdout
    monkeypatch.setenv("RANKTOP_SCREEN_THEEM", "day")
    failed = ranktop("config", "validate")
    assert failed.returncode == 2
    assert failed.stderr == "ranktop: environment: screen.theem is no key (did you mean theme?)\n"
