"""Which of a scenario's events are due."""

from __future__ import annotations

import heapq

from ranktop.demo.scenarios import Event, Scenario


class Script:
    """Hands out each event once, a repeated one each time it comes round."""

    def __init__(self, scenario: Scenario) -> None:
        self._events = scenario.events
        # (time, number of the event, how often it has happened)
        self._next = [(event.after_seconds, number, 0) for number, event in enumerate(self._events)]
        heapq.heapify(self._next)

    def due(self, seconds_after_ready: float) -> list[Event]:
        """Events since the last call, in the order of their time."""
        happened: list[Event] = []
        while self._next and self._next[0][0] <= seconds_after_ready:
            at, number, before = heapq.heappop(self._next)
            event = self._events[number]
            happened.append(event)
            if event.every_seconds is not None and (event.times is None or before + 1 < event.times):
                heapq.heappush(self._next, (at + event.every_seconds, number, before + 1))
        return happened
