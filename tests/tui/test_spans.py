"""Lines of roles: exact widths, few style changes, and text from outside made harmless."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.draw.spans import Span, fit, left, line, plain, right, spread, width


def test_equal_neighbours_merge() -> None:
    assert line("a", Span("b"), Span("c", "warn"), Span("", "muted")) == (Span("ab"), Span("c", "warn"))


@given(st.lists(st.tuples(st.text(max_size=9), st.sampled_from(["text", "warn"])), max_size=5), st.integers(0, 30))
def test_fit_gives_exactly_the_width(parts: list[tuple[str, str]], cells: int) -> None:
    assert width(fit(line(*(Span(plain(text), role) for text, role in parts)), cells, "…")) == cells


@given(st.text(max_size=20).map(plain), st.integers(1, 20))
def test_left_gives_exactly_the_width(text: str, cells: int) -> None:
    assert width((Span(left(text, cells, "…")),)) == cells


def test_right_cuts_from_the_left_where_numbers_are_unimportant() -> None:
    assert right("12.5", 6) == "  12.5"
    assert right("1234567", 5) == "<4567"


def test_spread_keeps_the_right_end() -> None:
    assert "".join(span.text for span in spread(line("a long beginning"), line("end"), 12, "…")) == "a long … end"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", " [31mred [0m"),
        ("a\u202egnp.exe", "agnp.exe"),
        ("zero\u200bwidth", "zerowidth"),
        ("tab\tnew\nline\rback\x07\x9b", "tab new line back  "),
        ("[bold]markup[/bold]", "[bold]markup[/bold]"),
    ],
)
def test_text_from_outside_cannot_steer_the_terminal(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_text_from_outside_is_bounded() -> None:
    assert len(plain("x" * 10_000_000)) == 400
