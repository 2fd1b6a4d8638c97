"""Questions to a track: gains, what held, the least rate; and what is still to be allocated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ranktop.reconcile.allocation import pending_pools
from ranktop.reconcile.history import History, Track
from ranktop.reconcile.unchanged import Unchanged
from ranktop.reconcile.windows import covers, gained, gained_lately, held, span_seconds, steady_rate
from support import changes, samples

PRIMARY = 120_000_012_288
INDEXER = 24_147_002_880


def track(*values: float, step: float = 1.0) -> Track:
    return Track(tuple(step * at for at in range(len(values))), tuple(map(float, values)))


def test_a_window_needs_its_length() -> None:
    assert covers(track(*range(31)), 30)
    assert covers(track(*range(30)), 30), "29 s of readings a second apart"
    assert not covers(track(*range(28)), 30)
    assert not covers(Track((), ()), 0)
    assert covers(track(*range(15), step=121), 1800), "15 readings 121 s apart: the window cuts off the sixteenth"
    assert covers(track(*range(6), step=5.02), 30), "a reading every five seconds"
    assert not covers(track(0, 1, step=16), 30), "two readings say nothing of what was between them"
    assert not covers(track(5), 30)
    assert span_seconds(Track((), ())) == 0


def test_what_held_held_all_along() -> None:
    assert held(track(*[6.0] * 31), 30, lambda value: value > 5)
    assert not held(track(*[6.0] * 15, 4.0, *[6.0] * 15), 30, lambda value: value > 5)
    assert not held(track(6.0), 30, lambda value: value > 5)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20), st.integers(0, 19))
def test_gains_add_up_and_are_never_negative(rises: list[int], cut: int) -> None:
    values: list[float] = [0.0]
    for rise in rises:
        values.append(values[-1] + rise)
    whole = gained(track(*values))
    at = min(cut, len(values) - 1)
    assert whole == sum(rises) == gained(track(*values[: at + 1])) + gained(track(*values[at:]))
    assert gained(track(*values, 3)) == whole + (3 if values[-1] > 3 else 3 - values[-1]), "a counter that starts anew"


def test_a_gain_is_seen_at_once_and_for_its_time() -> None:
    history = History()
    key = ("", "", "count.oom_kill")
    for second in range(40):
        history.record(1000.0 + second, {key: float(second >= 33)})
    assert gained_lately(history, key, 900) == 1, "between two points of the thin track"
    for second in range(40, 1000, 10):
        history.record(1000.0 + second, {key: 1.0})
    assert gained_lately(history, key, 900) == 0
    assert gained_lately(history, ("", "", "never"), 900) == 0


def test_a_steady_rate_is_that_of_the_slowest_third() -> None:
    assert steady_rate(track(*(5 * at for at in range(31))), 30) == pytest.approx(5)
    assert steady_rate(track(*(0 if at < 15 else 300 for at in range(31))), 30) == 0, "one burst"
    assert steady_rate(track(*range(10)), 30) is None


def test_pools_still_to_come_by_rank() -> None:
    sample = samples.with_pool(samples.healthy(), 2, PRIMARY)
    sample = changes.ranks(sample, lambda rank: replace(rank, rss_shmem_bytes=100 * 10**9), 5)
    sample = changes.ranks(sample, lambda rank: replace(rank, state="Z"), 6)
    sample = replace(sample, mappings={pid: maps for pid, maps in sample.mappings.items() if pid != samples.pid_of(7)})
    pending = {known.rank: known for known in pending_pools(sample, changes.judge([sample]).ranks, Unchanged())}
    assert set(pending) == {f"TP{tp}" for tp in range(6)}, "a zombie allocates nothing, unreadable maps tell nothing"
    assert (pending["TP0"].planned_bytes, pending["TP0"].pending_bytes) == (PRIMARY + INDEXER, 0)
    assert pending["TP2"].pending_bytes == INDEXER, "not mapped"
    assert pending["TP5"].pending_bytes == PRIMARY + INDEXER - 100 * 10**9, "mapped, not filled"


def test_private_pools_are_not_told_from_other_memory() -> None:
    sample = samples.healthy()
    private = {pid: tuple(replace(m, kind="private_thp") for m in maps) for pid, maps in sample.mappings.items()}
    sample = changes.ranks(replace(sample, mappings=private), lambda rank: replace(rank, rss_shmem_bytes=0))
    assert {known.pending_bytes for known in pending_pools(sample, changes.judge([sample]).ranks, Unchanged())} == {0}
