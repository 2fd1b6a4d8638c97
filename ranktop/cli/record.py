"""`ranktop record`: a recorder without a screen."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ranktop.cli.errors import OK, NothingToLookAt, UsageProblem
from ranktop.cli.history import record_history
from ranktop.cli.node_options import NodeOptions, make_feed, make_reconciler, node_options
from ranktop.cli.record_options import DURATION, SIZE
from ranktop.cli.stopping import until_a_signal

if TYPE_CHECKING:
    from ranktop.plan import LaunchRequest
    from ranktop.recording.recorder import Recorder, RecorderStatus

_FIRST_LOOK_SECONDS = 3.0


@click.command()
@node_options
@click.option("-o", "--output", required=True, metavar="FILE.rtop", type=click.Path(dir_okay=False))
@click.option("--duration", type=DURATION, metavar="TIME", help="Stop after 90s, 15m, 2h.")
@click.option("--max-size", type=SIZE, metavar="SIZE", help="Drop the oldest minutes beyond 500M, 2G.")
@click.option("--max-age", type=DURATION, metavar="TIME", help="Drop minutes that are older than 12h, 7d.")
@click.option("--overwrite", is_flag=True, help="Replace a recording that is there already.")
@click.option("--from-prometheus", "prometheus", metavar="URL", help="Record what a Prometheus server kept, then end.")
@click.option("--instance", metavar="NAME", help="With --from-prometheus: the server's `instance` label.")
@click.option("--start", default="-1h", show_default=True, metavar="TIME", help="With --from-prometheus.")
@click.option("--end", default=None, metavar="TIME", help="With --from-prometheus. Default: now.")
@click.option(
    "--step",
    default=15.0,
    type=click.FloatRange(1, 3600),
    metavar="SECONDS",
    show_default=True,
    help="Between two samples.",
)
def record(
    node: NodeOptions,
    output: str,
    duration: float | None,
    max_size: int | None,
    max_age: float | None,
    overwrite: bool,
    prometheus: str | None,
    instance: str | None,
    start: str,
    end: str | None,
    step: float,
) -> int:
    """Record this node until stopped: SIGTERM, SIGHUP and Ctrl-C close the file."""
    if prometheus is not None:
        if instance is None:
            raise UsageProblem("record: --from-prometheus needs --instance (the label of the server's target)")
        return record_history(
            prometheus,
            instance,
            output,
            make_reconciler(node),
            start=start,
            end=end,
            step_seconds=step,
            given=_given_launch(node),
            overwrite=overwrite,
        )
    stopped = until_a_signal()
    feed, reconciler = make_feed(node), make_reconciler(node)
    recorder = make_recorder(node, output, max_bytes=max_size, max_age_seconds=max_age, overwrite=overwrite)
    feed.start()
    feed.wait_first(_FIRST_LOOK_SECONDS)
    recorder.start()
    click.echo(f"record: {output}: recording (stop with SIGTERM or Ctrl-C)")
    ends = time.monotonic() + duration if duration is not None else None
    told: str | None = None
    try:
        due = time.monotonic()
        while not stopped.is_set() and (ends is None or time.monotonic() < ends):
            sample = feed.sample()
            recorder.put(sample, reconciler.update(sample))
            told = _tell(recorder.status, told)
            # From now when a suspend or a slow disk cost more than a period: nothing is caught up on.
            due = max(due + node.interval_seconds, time.monotonic() - node.interval_seconds)
            stopped.wait(max(0.0, due - time.monotonic()))
    finally:
        feed.stop()
        closed = recorder.stop()
    status = recorder.status
    if not closed:
        raise NothingToLookAt(f"record: {output}: the disk does not answer; what was written so far can be read")
    click.echo(f"record: {output}: {status.samples} samples, {status.used_bytes / 1e6:.1f} MB")
    return OK


def make_recorder(
    node: NodeOptions,
    path: str,
    *,
    max_bytes: int | None = None,
    max_age_seconds: float | None = None,
    overwrite: bool = False,
) -> Recorder:
    """A recorder for this node, not started yet. UsageProblem when the file cannot be made."""
    from ranktop.recording.errors import RecordingError
    from ranktop.recording.facts import facts
    from ranktop.recording.recorder import Recorder

    meta = facts(time.time(), interval_seconds=node.interval_seconds, given=_given_launch(node))
    try:
        return Recorder(path, meta, max_bytes=max_bytes, max_age_seconds=max_age_seconds, overwrite=overwrite)
    except RecordingError as problem:
        raise UsageProblem(f"record: {problem}") from problem


def _given_launch(node: NodeOptions) -> LaunchRequest | None:
    """As `make_reconciler` has read it already, so it can be read."""
    from ranktop.plan import parse_launch

    return parse_launch(Path(node.launch).read_text(encoding="utf-8")) if node.launch is not None else None


def _tell(status: RecorderStatus, told: str | None) -> str | None:
    """Say once that the disk refuses, and once that it no longer does."""
    if status.problem != told:
        click.echo(f"ranktop: record: {status.problem or 'the disk takes samples again'}", err=True)
    return status.problem
