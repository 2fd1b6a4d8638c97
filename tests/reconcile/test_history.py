"""Values over time: fine for two minutes, coarse for hours, with gaps left as gaps."""

from __future__ import annotations

import itertools

from ranktop.reconcile.history import History, LineKey

KEY = ("s", "TP0", "host.anon")
OTHER = ("s", "TP1", "host.anon")


def kept(seconds: range, window: float) -> tuple[float, ...]:
    history = History()
    for second in seconds:
        history.record(float(second), {KEY: float(second)})
    return history.track(KEY, window).seconds


def test_every_second_of_the_last_two_minutes() -> None:
    assert kept(range(1000), 60) == tuple(float(second) for second in range(939, 1000))
    assert kept(range(1000), 120) == tuple(float(second) for second in range(879, 1000))


def test_every_ten_seconds_beyond() -> None:
    points = kept(range(1000), 600)
    assert points[0] >= 390
    assert {later - earlier for earlier, later in itertools.pairwise(points)} == {10.0}


def test_memory_is_bounded() -> None:
    assert len(kept(range(0, 40_000, 10), 1e9)) <= 3 * 360 * 1.25 + 2


def test_a_gap_is_a_gap_and_a_lost_key_is_forgotten() -> None:
    history = History()
    for second in range(300):
        values = {KEY: 1.0} if 100 <= second < 200 else {KEY: 1.0, OTHER: 2.0}
        history.record(float(second), values)
    assert len(history.track(OTHER, 120).seconds) < 120
    for second in range(300, 600):
        history.record(float(second), {KEY: 1.0})
    assert history.track(OTHER, 120).seconds == ()
    assert history.track(("s", "TP9", "x"), 60).values == ()


def test_what_is_kept_seldom_is_asked_for_every_ten_seconds_and_told_over_any_window() -> None:
    history, asked = History(), list[float]()

    def seldom() -> dict[LineKey, float]:
        asked.append(1.0)
        return {OTHER: 2.0}

    for second in range(300):
        history.record(float(second), {KEY: 1.0}, seldom)
    assert len(asked) == 30
    assert history.track(OTHER, 60).seconds == (230.0, 240.0, 250.0, 260.0, 270.0, 280.0, 290.0)
    assert len(history.track(OTHER, 1e9).seconds) == 30
    assert len(history.track(KEY, 60).seconds) == 61
