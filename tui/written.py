"""Bytes to the terminal, counted where Textual hands them over."""

from __future__ import annotations

from typing import Any

from textual.driver import Driver


class Written:
    """Bytes that went to the terminal."""

    def __init__(self) -> None:
        self.bytes = 0


def counting(driver: type[Driver], written: Written) -> type[Driver]:
    """The same driver; what it writes is counted."""

    class Counting(driver):
        def write(self, data: str) -> Any:
            written.bytes += len(data) if data.isascii() else len(data.encode(errors="replace"))
            return super().write(data)

    return Counting
