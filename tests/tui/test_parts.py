"""A line of parts: whole or not there, and it says when some are not."""

from __future__ import annotations

import pytest

from tui.draw.parts import whole_parts

PARTS = (("host 1 GB",), ("avail 2 GB",), ("psi 0 %",))


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (40, "host 1 GB   avail 2 GB   psi 0 %"),
        (32, "host 1 GB   avail 2 GB   psi 0 %"),
        (31, "host 1 GB   avail 2 GB …"),
        (23, "host 1 GB …"),
        (9, "host 1 GB"),
    ],
)
def test_no_part_is_cut(width: int, shown: str) -> None:
    line = whole_parts(PARTS, width, "…")
    text = "".join(span.text for span in line)
    assert len(text) == width
    assert text.rstrip() == shown
