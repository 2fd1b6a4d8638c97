"""What the tests of the screen share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tui.app


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock on the screen is the sample's, in the zone of the test."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine, a picture is of the first sample."""
    monkeypatch.setattr(tui.app, "TICK_SECONDS", 3600.0)
