"""The time keys, over the last quarter of an hour live and over a whole recording: the same keys, two ways to serve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from ranktop.clock import duration, time_of_day
from ranktop.finding import Severity
from ranktop.reconcile.verdict import Verdict
from ranktop.recording.times import last_day
from ranktop.sample import Sample, SampleFeed, TimeControl
from tui.course import Course, Way
from tui.happening import Happening, marked
from tui.moment import Moment
from tui.timeline import LiveTimeline, Mark, next_breach, previous_breach
from tui.views.view import NO_DIFFERENCES, Differences

Judge = Callable[[Sample], Verdict]
GAP_SECONDS = 5.0
"""A recording whose newest sample is that much older than the time asked for has none for it."""


class TimeKeys(Protocol):
    """What the keys of time do. `tick` takes the newest verdict in and gives it; `shown` is the one to show."""

    @property
    def course(self) -> Course:
        """What led to the verdict that is shown."""
        ...

    def tick(self) -> Verdict: ...

    def shown(self) -> Verdict | None: ...

    def differences(self) -> Differences:
        """Where the verdict that is shown and the findings that were recorded differ."""
        ...

    def marked(self) -> Sequence[Happening]:
        """Marks that somebody put into the recording, up to the moment that is shown."""
        ...

    def moment(self) -> Moment: ...

    def now(self) -> float: ...

    def reach(self) -> tuple[float, float]:
        """First and last moment that a time of day can mean."""
        ...

    def toggle_pause(self) -> None: ...

    def step(self, seconds: int) -> None: ...

    def go_to(self, when: float) -> None: ...

    def next_breach(self) -> None: ...

    def previous_breach(self) -> None: ...


class Past(Protocol):
    """A recorder's file on this node, for the time before what is kept in memory."""

    @property
    def name(self) -> str: ...

    @property
    def way(self) -> Way: ...

    def close(self) -> None:
        """Let go of the file."""
        ...

    def span(self) -> tuple[float, float]: ...

    def at(self, when: float) -> Verdict | None: ...

    def earlier(self) -> Iterable[Verdict]: ...

    def changes(self) -> Sequence[tuple[float, Severity | None]]: ...


OpenPast = Callable[[Sample], Past | None]
"""The past of the servers of that sample."""


class LiveTime:
    """Sampling and judging go on while the picture stands still; what was shown is kept for a quarter of an hour.

    What was before that is shown from the file of a recorder, when `open_past` finds one.
    """

    def __init__(self, feed: SampleFeed, judge: Judge, open_past: OpenPast = lambda _: None) -> None:
        self._feed = feed
        self._judge = judge
        self._timeline = LiveTimeline()
        self._newest: Verdict | None = None
        self._when: float | None = None
        self._course = Course()
        self._open_past = open_past
        self._past: Past | None = None
        """Open while the picture stands still."""
        self._past_course = Course()
        self._found: Verdict | None = None
        """The verdict from the file, while one of it is shown."""
        self._then: Verdict | None = None
        """The verdict from memory that the picture stands at."""

    @property
    def course(self) -> Course:
        if self._found is not None:
            return self._past_course
        return self._course if self._when is None else self._course.until(self._when)

    def tick(self) -> Verdict:
        self._newest = self._judge(self._feed.sample())
        self._timeline.push(self._newest)
        self._course.push(self._newest)
        self._look()
        return self._newest

    def shown(self) -> Verdict | None:
        if self._when is None:
            return self._newest
        return self._found or self._then or self._newest

    def differences(self) -> Differences:
        return NO_DIFFERENCES

    def marked(self) -> Sequence[Happening]:
        return ()

    def moment(self) -> Moment:
        newest = self._newest.sample.at_unix_seconds if self._newest else 0.0
        if self._when is None:
            return Moment("live", newest)
        behind = newest - self._when
        mode = "paused" if behind < 1.5 else f"paused -{duration(behind)}"
        if self._found is not None and self._past is not None:
            at = self._found.sample.at_unix_seconds
            mode += f" from {self._past.name}"
            if self._when - at > GAP_SECONDS:
                mode += f": nothing after {time_of_day(at)}"
        return Moment(mode, self._when, self._span(), self._marks())

    def now(self) -> float:
        newest = self._newest.sample.at_unix_seconds if self._newest else 0.0
        return self._when if self._when is not None else newest

    def reach(self) -> tuple[float, float]:
        return last_day(self._newest.sample.at_unix_seconds if self._newest else 0.0)

    def toggle_pause(self) -> None:
        if self._newest is None:
            return
        if self._when is None:
            self._stop(self._newest.sample.at_unix_seconds)
        else:
            self._when = None
            self._let_go()

    def step(self, seconds: int) -> None:
        self.go_to(self.now() + seconds)

    def go_to(self, when: float) -> None:
        self._stop(when)

    def next_breach(self) -> None:
        self._go_if(next_breach)

    def previous_breach(self) -> None:
        self._go_if(previous_breach)

    def _go_if(self, find: Callable[[Sequence[Mark], float], float | None]) -> None:
        was_live = self._when is None
        self._stop(self.now())
        when = find(self._marks(), self.now())
        if when is not None:
            self._stop(when)
        elif was_live:
            self.toggle_pause()

    def _stop(self, when: float) -> None:
        """Stand at the nearest moment to `when` that can be shown."""
        if self._when is None and self._newest is not None:
            self._past = self._open_past(self._newest.sample)
        span = self._span()
        self._when = None if span is None else max(span[0], min(span[1], when))
        self._look()
        self._then = None if self._when is None or self._found is not None else self._timeline.at(self._when)

    def _let_go(self) -> None:
        if self._past is not None:
            self._past.close()
        self._past = self._found = self._then = None

    def _look(self) -> None:
        """Take the verdict from the file when the moment is before those in memory."""
        live = self._timeline.span()
        if self._past is None or self._when is None or live is None or self._when >= live[0]:
            self._found = None
            return
        self._found = self._past.at(self._when)
        self._past_course.follow(self._past.way, self._past.earlier)

    def _span(self) -> tuple[float, float] | None:
        live, past = self._timeline.span(), self._past.span() if self._past is not None else None
        return (min(past[0], live[0]), live[1]) if live is not None and past is not None else live

    def _marks(self) -> Sequence[Mark]:
        live, span = self._timeline.marks(), self._timeline.span()
        if self._past is None or span is None:
            return live
        return [*(Mark(*change) for change in self._past.changes() if change[0] < span[0]), *live]


class Noted(Protocol):
    """A mark in a recording."""

    @property
    def at_unix_seconds(self) -> float: ...

    @property
    def text(self) -> str: ...


class Replay(TimeControl, SampleFeed, Protocol):
    """A feed whose time can be moved, and that knows where breaches opened."""

    @property
    def way(self) -> Way: ...

    def earlier(self) -> Iterable[Verdict]: ...

    def differences(self, verdict: Verdict) -> Differences: ...

    def next_breach(self) -> bool: ...

    def previous_breach(self) -> bool: ...

    def changes(self) -> Sequence[tuple[float, Severity | None]]:
        """(Unix seconds, worst severity from then on) over the whole recording, oldest first."""
        ...

    @property
    def marks(self) -> Sequence[Noted]: ...


class ReplayTime:
    """Over a recording: time runs at its speed, stands, and jumps."""

    def __init__(self, feed: Replay, judge: Judge) -> None:
        self._feed = feed
        self._judge = judge
        self._shown: Verdict | None = None
        self.course = Course()

    def tick(self) -> Verdict:
        self._shown = self._judge(self._feed.sample())
        self.course.follow(self._feed.way, self._feed.earlier)
        return self._shown

    def differences(self) -> Differences:
        return self._feed.differences(self._shown) if self._shown is not None else NO_DIFFERENCES

    def marked(self) -> Sequence[Happening]:
        now = self.now()
        made = (mark for mark in self._feed.marks if mark.at_unix_seconds <= now)
        return [marked(mark.at_unix_seconds, mark.text) for mark in made]

    def shown(self) -> Verdict | None:
        return self._shown

    def moment(self) -> Moment:
        speed = f" {self._feed.speed:g}x" if self._feed.speed != 1 else ""
        mode = f"replay{speed}" if self._feed.is_playing else "replay paused"
        marks = [Mark(at, severity) for at, severity in self._feed.changes()]
        return Moment(mode, self.now(), self._feed.span(), marks)

    def now(self) -> float:
        return self._feed.now or 0.0

    def reach(self) -> tuple[float, float]:
        return self._feed.span() or last_day(self.now())

    def toggle_pause(self) -> None:
        if self._feed.is_playing:
            self._feed.pause()
        else:
            self._feed.play()

    def step(self, seconds: int) -> None:
        if abs(seconds) == 1:
            self._feed.step(seconds)
        else:
            self.go_to(self.now() + seconds)

    def go_to(self, when: float) -> None:
        self._feed.pause()
        self._feed.seek(when)

    def next_breach(self) -> None:
        self._feed.next_breach()

    def previous_breach(self) -> None:
        self._feed.previous_breach()
