"""What providers promise and screens rely on. Neither side imports the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ranktop.sample.process import Processes
from ranktop.sample.sample import Sample


class Collector(Protocol):
    """One source. `read` may block; it runs in a thread of its own with a deadline.

    `part` names the field of `Sample` that it fills. With `server` set, the part is one entry of that field's dict.
    `read` raises NoData or SourceError; any other exception is shown as an error of this source alone.
    """

    @property
    def name(self) -> str: ...

    @property
    def part(self) -> str: ...

    @property
    def server(self) -> str | None: ...

    @property
    def period_seconds(self) -> float: ...

    def read(self, processes: Processes | None, now: float) -> Any: ...


class SampleFeed(Protocol):
    """Where a screen or a recorder gets its samples from: a live poller, a recording, a test."""

    def start(self) -> None: ...

    def sample(self) -> Sample:
        """The newest sample. Never blocks on a source."""
        ...

    def stop(self) -> None:
        """Let go without waiting for a source that hangs."""
        ...


class TimeControl(Protocol):
    """A feed whose time the user moves: a recording. Times are Unix seconds of the recorded node."""

    @property
    def is_playing(self) -> bool: ...

    @property
    def speed(self) -> float:
        """Recorded seconds a second."""
        ...

    @property
    def now(self) -> float | None:
        """The time of the sample that is shown; None in an empty recording."""
        ...

    def span(self) -> tuple[float, float] | None:
        """First and last moment that can be shown."""
        ...

    def play(self, speed: float | None = None) -> None:
        """Let time run; a speed outside of what the feed can do is brought into its range."""
        ...

    def pause(self) -> None: ...

    def step(self, samples: int) -> None:
        """So many samples on, or back; pauses."""
        ...

    def seek(self, at_unix_seconds: float) -> None:
        """To the newest sample not after that time."""
        ...


class GpuHold(Protocol):
    """The driver session that blocks a GPU reset while it is open."""

    @property
    def is_released(self) -> bool: ...

    def release(self) -> None: ...

    def resume(self) -> None: ...


Clock = Callable[[], float]
