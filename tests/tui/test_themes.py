"""Themes: whole, legible, and clear about what is wrong with a bad file."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.color import Color, ColorSystem

from tui.palette import textual_theme
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
