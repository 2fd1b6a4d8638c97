"""What the app can do besides drawing, given by whoever starts it: a replay records nothing, a test resets no GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ranktop.reconcile.verdict import Verdict
from ranktop.sample import GpuHold, OwnUse, Sample


class RecorderStatus(Protocol):
    """How a recording stands. `problem` is one line while the disk refuses."""

    @property
    def used_bytes(self) -> int: ...

    @property
    def problem(self) -> str | None: ...


class WrittenMark(Protocol):
    """A mark in a recording: when, in Unix seconds, and what."""

    @property
    def at(self) -> float: ...

    @property
    def text(self) -> str: ...


class Recorder(Protocol):
    """A recording under way. `put` never waits."""

    @property
    def status(self) -> RecorderStatus: ...

    def put(self, sample: Sample, verdict: Verdict | None = None) -> None: ...

    def mark(self, text: str) -> None: ...

    def new_marks(self) -> Sequence[WrittenMark]:
        """Those that were written since this was last asked, whoever set them."""
        ...

    def stop(self) -> bool: ...


class Failed(Exception):  # noqa: N818 - one line for the user
    """A tool could not do its work: what was tried, what came back."""


class Tools(NamedTuple):
    """None where a tool is not to be had here. Each raises Failed with one line."""

    gpus: GpuHold | None = None
    new_recorder: Callable[[], tuple[str, Recorder]] | None = None
    """Starts a recording; gives the file's name and the recorder."""
    export: Callable[[Verdict], str] | None = None
    """Writes what is shown as a document; gives the file's name."""
    own: Callable[[], OwnUse] | None = None
    """What this process has cost so far."""
    give_back: Callable[[], None] | None = None
    """Lets the kernel have memory that this process does not use."""


NO_TOOLS = Tools()
