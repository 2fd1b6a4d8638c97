"""What charts and the event view show: the verdicts up to the one that is shown, live or in a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from ranktop.reconcile.verdict import Verdict
from tui.eventlog import EventLog
from tui.trails import Trails

EARLIER_STEP_SECONDS = 15
"""How far apart the verdicts on the time before a jump are."""


class Way(Protocol):
    """The verdicts between the one that was shown before and the present one, this last."""

    @property
    def verdicts(self) -> Sequence[Verdict]: ...

    @property
    def is_jump(self) -> bool:
        """They do not follow on what was shown before."""
        ...


class Course:
    """Trails and events along one way through time."""

    def __init__(self) -> None:
        self.trails = Trails()
        self.events = EventLog()
        self._begins_late = False

    def push(self, verdict: Verdict) -> None:
        """One verdict more."""
        self.trails.push(verdict)
        self.events.push(verdict)

    def until(self, when: float) -> Course:
        """As it was at `when` (Unix seconds); good until the next `push`."""
        then = Course()
        then.trails, then.events = self.trails.until(when), self.events.until(when)
        return then

    def follow(self, way: Way, earlier: Callable[[], Iterable[Verdict]]) -> None:
        """All verdicts of a way. After a jump what was before it comes with the next call, so that a jump is quick."""
        if way.is_jump:
            self.trails, self.events, self._begins_late = Trails(), EventLog(), True
        elif self._begins_late:
            self._begins_late = False
            self.trails.begin_with(earlier(), EARLIER_STEP_SECONDS)
        for verdict in way.verdicts:
            self.push(verdict)
