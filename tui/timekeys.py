"""The time keys, over the last quarter of an hour live and over a whole recording: the same keys, two ways to serve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ranktop.clock import duration
from ranktop.finding import Severity
from ranktop.reconcile.verdict import Verdict
from ranktop.sample import Sample, SampleFeed, TimeControl
from tui.moment import clamp
from tui.screens.main import Moment
from tui.timeline import LiveTimeline, Mark, next_breach, previous_breach

Judge = Callable[[Sample], Verdict]


class TimeKeys(Protocol):
    """What the keys of time do. `tick` takes the newest verdict in and gives the one to show."""

    def tick(self) -> Verdict: ...

    def shown(self) -> Verdict | None: ...

    def moment(self) -> Moment: ...

    def now(self) -> float: ...

    def toggle_pause(self) -> None: ...

    def step(self, seconds: int) -> None: ...

    def go_to(self, when: float) -> None: ...

    def next_breach(self) -> None: ...

    def previous_breach(self) -> None: ...


class LiveTime:
    """Sampling and judging go on while the picture stands still; what was shown is kept for a quarter of an hour."""

    def __init__(self, feed: SampleFeed, judge: Judge) -> None:
        self._feed = feed
        self._judge = judge
        self._timeline = LiveTimeline()
        self._newest: Verdict | None = None
        self._when: float | None = None

    def tick(self) -> Verdict:
        self._newest = self._judge(self._feed.sample())
        self._timeline.push(self._newest)
        return self._newest

    def shown(self) -> Verdict | None:
        return self._newest if self._when is None else self._timeline.at(self._when) or self._newest

    def moment(self) -> Moment:
        newest = self._newest.sample.at_unix_seconds if self._newest else 0.0
        if self._when is None:
            return Moment("live", newest)
        behind = newest - self._when
        mode = "paused" if behind < 1.5 else f"paused -{duration(behind)}"
        return Moment(mode, self._when, self._timeline.span(), self._timeline.marks())

    def now(self) -> float:
        newest = self._newest.sample.at_unix_seconds if self._newest else 0.0
        return self._when if self._when is not None else newest

    def toggle_pause(self) -> None:
        self._when = None if self._when is not None or self._newest is None else self._newest.sample.at_unix_seconds

    def step(self, seconds: int) -> None:
        self.go_to(self.now() + seconds)

    def go_to(self, when: float) -> None:
        self._when = clamp(self._timeline, when)

    def next_breach(self) -> None:
        self._go_if(next_breach(self._timeline.marks(), self.now()))

    def previous_breach(self) -> None:
        self._go_if(previous_breach(self._timeline.marks(), self.now()))

    def _go_if(self, when: float | None) -> None:
        if when is not None:
            self.go_to(when)


class Replay(TimeControl, SampleFeed, Protocol):
    """A feed whose time can be moved, and that knows where breaches opened."""

    def next_breach(self) -> bool: ...

    def previous_breach(self) -> bool: ...

    def changes(self) -> Sequence[tuple[float, Severity | None]]:
        """(Unix seconds, worst severity from then on) over the whole recording, oldest first."""
        ...


class ReplayTime:
    """Over a recording: time runs at its speed, stands, and jumps."""

    def __init__(self, feed: Replay, judge: Judge) -> None:
        self._feed = feed
        self._judge = judge
        self._shown: Verdict | None = None

    def tick(self) -> Verdict:
        self._shown = self._judge(self._feed.sample())
        return self._shown

    def shown(self) -> Verdict | None:
        return self._shown

    def moment(self) -> Moment:
        speed = f" {self._feed.speed:g}x" if self._feed.speed != 1 else ""
        mode = f"replay{speed}" if self._feed.is_playing else "replay paused"
        marks = [Mark(at, severity) for at, severity in self._feed.changes()]
        return Moment(mode, self.now(), self._feed.span(), marks)

    def now(self) -> float:
        return self._feed.now or 0.0

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
