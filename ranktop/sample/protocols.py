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


Clock = Callable[[], float]
