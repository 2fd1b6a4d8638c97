"""Times as people type them, held against what a file has of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from ranktop.recording.times import last_day, parse_duration, parse_moment, parse_size


def at(day: int, clock: str) -> float:
    return datetime.fromisoformat(f"2026-11-{day:02d}T{clock}").timestamp()


def meant(text: str, begins: float, ends: float, shown: float | None = None) -> str:
    return datetime.fromtimestamp(parse_moment(text, begins, ends, shown)).strftime("%d %H:%M:%S")


@pytest.fixture(params=["UTC", "Asia/Kolkata"])
def _zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_zone")
@pytest.mark.parametrize(
    ("typed", "begins", "ends", "shown", "is_"),
    [
        pytest.param("12:00", (29, "11:51"), (29, "12:30"), None, "29 12:00:00", id="in the file"),
        pytest.param("11:00", (29, "11:51"), (29, "12:30"), None, "29 11:00:00", id="before its beginning"),
        pytest.param("14:00", (29, "11:51"), (29, "12:30"), None, "29 14:00:00", id="after its end"),
        pytest.param("01:00", (29, "15:13"), (29, "15:15"), None, "29 01:00:00", id="long before its beginning"),
        pytest.param("23:50", (29, "00:05"), (29, "01:00"), None, "29 23:50:00", id="long after its end"),
        pytest.param("22:00", (28, "23:00"), (29, "01:00"), None, "28 22:00:00", id="before a night"),
        pytest.param("02:00", (28, "23:00"), (29, "01:00"), None, "29 02:00:00", id="after a night"),
        pytest.param("00:10", (28, "23:00"), (29, "01:00"), None, "29 00:10:00", id="after midnight"),
        pytest.param("11:51", (29, "11:51:20"), (30, "23:00"), None, "29 11:51:00", id="its first minute"),
        pytest.param("11:51:00", (29, "11:51:20"), (30, "23:00"), None, "30 11:51:00", id="a second before it"),
        pytest.param("14:00", (27, "12:00"), (30, "12:00"), None, "27 14:00:00", id="the first of several"),
        pytest.param("14:00", (27, "12:00"), (30, "12:00"), (29, "09:00"), "29 14:00:00", id="the one near"),
        pytest.param("12:25", (29, "11:51"), (29, "12:30"), (29, "12:10"), "29 12:25:00", id="later than shown"),
        pytest.param("-10m", (29, "11:51"), (29, "12:30"), None, "29 12:20:00", id="before the end"),
        pytest.param("-10m", (29, "11:51"), (29, "12:30"), (29, "12:10"), "29 12:00:00", id="before what is shown"),
        pytest.param("2026-11-28T09:00", (29, "11:51"), (29, "12:30"), None, "28 09:00:00", id="with its day"),
    ],
)
def test_a_time_of_day_is_the_one_that_the_file_has_or_the_nearest(
    typed: str,
    begins: tuple[int, str],
    ends: tuple[int, str],
    shown: tuple[int, str] | None,
    is_: str,
) -> None:
    assert meant(typed, at(*begins), at(*ends), shown and at(*shown)) == is_


@pytest.mark.parametrize(
    ("typed", "is_"), [("14:03", "29 14:03:00"), ("14:04", "28 14:04:00"), ("23:00", "28 23:00:00")]
)
def test_live_it_is_the_last_such_time(typed: str, is_: str) -> None:
    assert meant(typed, *last_day(at(29, "14:03:20"))) == is_


@pytest.mark.parametrize("typed", ["25:00", "14:60", "noon", "", "-", "-10x"])
def test_what_is_no_time_is_said(typed: str) -> None:
    with pytest.raises(ValueError, match="is no "):
        parse_moment(typed, at(29, "11:51"), at(29, "12:30"))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("2h", 7200.0), (" 7 d ", 604800.0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(("text", "size"), [("500", 500), ("500M", 500_000_000), ("2GiB", 2 << 30), ("1.5k", 1500)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "soon", "-5", "1e3", "10w", "9" * 400 + "s", "101000000h"])
def test_what_is_no_duration_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["", "big", "-5", "10T", "9" * 400, "2000000000G"])
def test_what_is_no_size_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)
