"""Text in lines of a width."""

from __future__ import annotations

import textwrap
from typing import Any


def folded(text: str, cells: int, **how: Any) -> list[str]:
    """In pieces of so many cells at most, cut at blanks alone: a flag that ends in a hyphen is none. `how`: as textwrap
    has it."""
    return textwrap.wrap(text, cells, break_on_hyphens=False, **how)
