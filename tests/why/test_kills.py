"""Kills of the kernel: each once, those of one shortage together."""

from __future__ import annotations

from typing import Any

from ranktop.sample import Event
from ranktop.why.kills import shortages


def kill(pid: int, at: float, **fields: Any) -> tuple[str, Event]:
    return "dmesg", Event(at, "oom_kill", f"killed {pid}", fields={"pid": pid, "memcg": True, **fields})


def pids(*found: tuple[str, Event]) -> list[list[int]]:
    return [[event.fields["pid"] for event in shortage.kills] for shortage in shortages(found)]


def test_kills_within_half_a_minute_are_one_shortage() -> None:
    assert pids(kill(2, 125.0), kill(1, 100.0), kill(3, 154.0)) == [[1, 2, 3]], "from kill to kill"
    assert pids(kill(1, 100.0), kill(2, 131.0)) == [[1], [2]]


def test_kills_of_different_limits_are_not() -> None:
    assert pids(kill(1, 100.0, oom_memcg="/a"), kill(2, 101.0, oom_memcg="/b")) == [[1], [2]]
    assert pids(kill(1, 100.0, oom_memcg="/a"), kill(2, 101.0)) == [[1, 2]], "further kills come without it"
    assert pids(kill(1, 100.0), kill(2, 101.0, memcg=False)) == [[1], [2]], "a cgroup's, and the host's"


def test_a_kill_that_two_sources_tell_is_one() -> None:
    named = kill(1, 100.2, constraint="CONSTRAINT_MEMCG")
    assert pids(kill(1, 100.0), named) == [[1]]
    (shortage,) = shortages([kill(1, 100.0), named])
    assert shortage.first.fields["constraint"] == "CONSTRAINT_MEMCG"
