"""Themes: whole, legible, and clear about what is wrong with a bad file."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.color import Color, ColorSystem

from ranktop.cli.screen_choice import screen_choice
from ranktop.cli.settings import Settings
from tui.first import color_system
from tui.palette import textual_theme
from tui.styles import styles_of
from tui.themes import ROLES, ThemeError, load_theme, packaged_themes, parse_theme

NOT_TEXT = {"background", "panel", "faint", "bar"}


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio of two #rrggbb colours, 1 to 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("name", packaged_themes())
@pytest.mark.parametrize("behind", ["background", "panel"])
def test_text_is_legible(name: str, behind: str) -> None:
    colors = load_theme(name).colors
    poor = {role: contrast(colors[role], colors[behind]) for role in ROLES if role not in NOT_TEXT}
    assert {role: ratio for role, ratio in poor.items() if ratio < 4.5} == {}


XTERM = [
    *("#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5"),
    *("#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff"),
]
"""Its sixteen colours as they are without any setting (XTerm-col.ad)."""


@pytest.mark.parametrize("name", packaged_themes())
@pytest.mark.parametrize("behind", ["background", "panel"])
def test_text_is_legible_in_sixteen_colours(name: str, behind: str) -> None:
    ansi = load_theme(name).ansi
    poor = {role: contrast(XTERM[ansi[role]], XTERM[ansi[behind]]) for role in ROLES if role not in NOT_TEXT}
    assert {role: ratio for role, ratio in poor.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("name", sorted(set(packaged_themes()) - {"mono"}))
def test_what_is_wrong_has_colours_of_its_own_also_in_sixteen(name: str) -> None:
    theme = load_theme(name)
    for colors in (theme.colors, theme.ansi):
        loud = {role: colors[role] for role in ("warn", "breach", "critical")}
        assert len(set(loud.values())) == 3
        assert set(loud.values()).isdisjoint(colors[role] for role in set(ROLES) - set(loud))


@pytest.mark.parametrize(
    ("environment", "warn"),
    [
        ({"TERM": "xterm"}, "34;107"),
        ({"TERM": "xterm", "NO_COLOR": "1"}, "33;107"),
        ({"TERM": "xterm-256color"}, "38;5;"),
    ],
)
def test_a_terminal_of_sixteen_colours_gets_those_of_the_theme(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], warn: str
) -> None:
    """All themes that the key goes through; `day` by what a terminal is told. Greys are made of the true colours."""
    for name in ("COLORTERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    day, *others = screen_choice(Settings(), "day", False, True).themes
    drawn = styles_of(day)["warn", False].render("x", color_system=color_system(environment))
    assert drawn.startswith(f"\x1b[{warn}")
    assert {theme.has_sixteen for theme in others} == {day.has_sixteen}


@pytest.mark.parametrize("name", packaged_themes())
def test_textual_takes_it(name: str) -> None:
    assert textual_theme(load_theme(name)).to_color_system().generate()


def test_contrast_by_the_book() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def theme_text(**changes: str) -> str:
    colors = dict.fromkeys(ROLES, "#123456") | changes
    return 'name = "mine"\ndark = true\n[colors]\n' + "\n".join(f'{role} = "{color}"' for role, color in colors.items())


def test_a_users_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(theme_text())
    assert load_theme(str(path)).name == "mine"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", "not TOML"),
        ('name = "x"', r"no \[colors\]"),
        (theme_text(warn="red"), "colors.warn is 'red'"),
        (theme_text(sparkle="#123456"), "colors.sparkle is no colour of ranktop"),
        (theme_text().replace("dark = true", ""), "needs name"),
        (theme_text() + "\n[ansi]\nwarn = 3", r"\[ansi\] must give a number from 0 to 15"),
        (theme_text() + "\n[ansi]\n" + "\n".join(f"{role} = 16" for role in ROLES), r"\[ansi\] must give"),
    ],
)
def test_a_bad_file_says_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(ThemeError, match=says):
        parse_theme(text, "mine.toml")


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(ThemeError, match="one of night, colour-blind, day"):
        load_theme("nihgt")


@pytest.mark.parametrize("name", packaged_themes())
def test_the_cursors_row_can_be_told_in_256_colours(name: str) -> None:
    """Over SSH there are rarely more."""
    colors = load_theme(name).colors
    behind = {Color.parse(colors[role]).downgrade(ColorSystem.EIGHT_BIT).number for role in ("background", "panel")}
    assert len(behind) == 2
