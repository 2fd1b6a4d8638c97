from __future__ import annotations

from ranktop.demo.scenarios import Event, Scenario
from ranktop.demo.script import Script

ONCE = Event(4.0, "exit", tp=5)
AGAIN = Event(1.0, "grow", tp=2, every_seconds=2.0)
TWICE = Event(0.5, "log", text="words", every_seconds=1.0, times=2)


def test_an_event_comes_once_and_not_before_its_time() -> None:
    script = Script(Scenario("s", "one event", events=(ONCE,)))
    assert [script.due(at) for at in (0.0, 3.9, 4.0, 99.0)] == [[], [], [ONCE], []]


def test_repeated_events_are_handed_out_in_the_order_of_their_times() -> None:
    script = Script(Scenario("s", "three events", events=(ONCE, AGAIN, TWICE)))
    assert script.due(1.5) == [TWICE, AGAIN, TWICE]
    assert script.due(5.0) == [AGAIN, ONCE, AGAIN]
    assert script.due(6.9) == []
