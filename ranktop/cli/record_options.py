"""Options of the commands that read recordings, and how their times, sizes and files are understood."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from ranktop.cli.errors import NothingToLookAt, UsageProblem
from ranktop.recording.errors import way_out
from ranktop.recording.times import parse_duration, parse_moment, parse_size

if TYPE_CHECKING:
    from ranktop.recording.reader import Recording


class Parsed(click.ParamType[Any]):
    """A value that a function of `recording.times` reads; its ValueError is the message."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as problem:
            self.fail(str(problem), param, ctx)


DURATION = Parsed("duration", parse_duration)
SIZE = Parsed("size", parse_size)

FILE = click.argument("file", metavar="FILE.rtop", type=click.Path(dir_okay=False))
SALVAGE = click.option("--salvage", is_flag=True, help="Read what a damaged file still holds; repair flipped bits.")
FROM = click.option(
    "--from", "since", metavar="TIME", help="2026-11-29T14:03, or 14:03 (of its day), or -10m (before its end)."
)
TO = click.option("--to", "until", metavar="TIME", help="As --from.")


@contextmanager
def opened(path: str, salvaged: bool = False) -> Generator[Recording]:
    """The recording, closed afterwards. NothingToLookAt when it cannot be read."""
    from ranktop.recording.errors import RecordingError
    from ranktop.recording.reader import Recording
    from ranktop.recording.salvage import salvage

    try:
        with salvage(path).recording if salvaged else Recording(path) as recording:
            yield recording
    except RecordingError as problem:
        # Also of a page that is damaged and needed only later.
        raise NothingToLookAt(str(problem)) from problem


def said_damage(recording: Recording) -> None:
    """Tell on standard error what could not be read, and what may still read it."""
    for line in recording.damage[:20]:
        click.echo(f"ranktop: {recording.path}: {line}", err=True)
    if recording.damage and not recording.is_salvaged:
        click.echo(f"ranktop: {way_out(recording.path)}, and those with a flipped bit", err=True)


def seq_range(recording: Recording, since: str | None, until: str | None) -> tuple[int, int]:
    """Numbers of the first and the last sample of a range. NothingToLookAt when it holds none."""
    spans = recording.index.spans
    if not spans:
        raise NothingToLookAt(f"{recording.path}: holds no sample")
    t0, t1 = spans[0].t0, max(span.t1 for span in spans)
    try:
        start = t0 if since is None else parse_moment(since, t0, t1)
        end = t1 if until is None else parse_moment(until, min(max(start, t0), t1), t1)
    except ValueError as problem:
        raise UsageProblem(str(problem)) from problem
    if end < start or start > t1 or end < t0:
        raise NothingToLookAt(
            f"{recording.path}: nothing was recorded from {span_text(start, end)} (it has {span_text(t0, t1)})"
        )
    first, last = recording.seq_at(start), recording.seq_at(end)
    if start > t0 and recording.sample(first).at_unix_seconds < start:
        first = recording.index.seq(recording.index.position(first) + 1)
    return first, last


def span_text(t0: float, t1: float) -> str:
    """`2026-11-29T14:03:27+01:00 to 2026-11-29T15:00:00+01:00`: as they can be given again."""
    return " to ".join(datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds") for at in (t0, t1))
