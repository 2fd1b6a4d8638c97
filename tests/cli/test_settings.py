"""The configuration: layers, and errors that say where and what instead."""

from __future__ import annotations

import itertools
from importlib import resources
from pathlib import Path

import pytest

from ranktop.cli.errors import UsageProblem
from ranktop.cli.screen_choice import screen_choice
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
    assert 'pause = "space"' in printed.stdout, "every action with its key"
    monkeypatch.setenv("RANKTOP_SCREEN_THEEM", "day")
    failed = ranktop("config", "validate")
    assert failed.returncode == 2
    assert failed.stderr == "ranktop: environment: screen.theem is no key (did you mean theme?)\n"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("RANKTOP_KEYS_PAUS", "p", "[keys] paus is no action (did you mean pause?)"),
        ("RANKTOP_KEYS_PAUSE", "m", "[keys] 'm' is on pause and on mark: give one of them another key"),
        ("RANKTOP_KEYS_REFRESH", "n", "[keys] 'n' is on next_breach and on refresh: give one of them another key"),
        ("RANKTOP_KEYS_PAUSE", "spcae", "[keys] pause: 'spcae' is no key (did you mean space?)"),
        ("RANKTOP_SCREEN_COLUMNS", "rank,hmb", "screen.columns: hmb is no column (did you mean hbm?)"),
        ("RANKTOP_SCREEN_COLUMNS", "rank,hbm,rank:8", "screen.columns: rank is there twice"),
        (
            "RANKTOP_SCREEN_COLUMNS",
            "rank,hbm:9",
            "screen.columns: 'hbm:9': hbm can be 12 to 80 cells wide, like hbm:12",
        ),
        (
            "RANKTOP_SCREEN_COLUMNS",
            "rank:,hbm",
            "screen.columns: 'rank:': rank can be 3 to 80 cells wide, like rank:12",
        ),
        (
            "RANKTOP_SCREEN_COLUMNS",
            "state:wide",
            "screen.columns: 'state:wide': state can be 6 to 80 cells wide, like state:12",
        ),
        (
            "RANKTOP_SCREEN_COLUMNS",
            "rank,local:8:101",
            "screen.columns: 'local:8:101': a weight is 0 to 100 (the heaviest stay longest), like local:8:60",
        ),
        (
            "RANKTOP_SCREEN_COLUMNS",
            "l2::",
            "screen.columns: 'l2::': a weight is 0 to 100 (the heaviest stay longest), like l2::82",
        ),
        (
            "RANKTOP_SCREEN_COLUMNS",
            "state:12:7:3",
            "screen.columns: 'state:12:7:3': a weight is 0 to 100 (the heaviest stay longest), like state:12:99",
        ),
        (
            "RANKTOP_SCREEN_COLUMNS",
            "rank,local:3+",
            "screen.columns: 'local:3+': local can be 7 to 80 cells wide, like local:12",
        ),
    ],
)
def test_keys_and_columns_that_the_screen_would_refuse(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, text: str, says: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv(name, text)
    failed = ranktop("config", "validate")
    assert (failed.returncode, failed.stderr) == (2, f"ranktop: environment: {says}\n")


def test_the_users_keys_columns_and_themes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    folder = user_file({"HOME": str(tmp_path)}).parent
    (folder / "themes").mkdir(parents=True)
    night = resources.files("themes").joinpath("night.toml").read_text()
    (folder / "themes" / "mine.toml").write_text(night.replace('"night"', '"mine"'))
    (folder / "config.toml").write_text(
        '[screen]\ntheme = "mine"\ncolumns = ["rank", "state:30"]\n[keys]\npause = "p,space"\n'
    )
    settings = load_settings({"HOME": str(tmp_path)}, folder / "none")
    chosen = screen_choice(settings, None, False, True)
    assert [theme.name for theme in itertools.islice(chosen.themes, 2)] == ["mine", "night"]
    assert chosen.columns == ("rank", "state:30")
    assert chosen.keys == {"pause": "p,space"}
    (folder / "themes" / "bad.toml").write_text("name =")
    with pytest.raises(UsageProblem, match=r"bad\.toml: not TOML"):
        screen_choice(settings, None, False, True)
