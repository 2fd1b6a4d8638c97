"""`record --from-prometheus`: what a Prometheus server kept of one SGLang server, as a recording."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ranktop.cli.errors import OK, NothingToLookAt, UsageProblem
from ranktop.cli.fleet import TOKEN, checked_url, secret

if TYPE_CHECKING:
    from ranktop.plan import LaunchRequest
    from ranktop.reconcile import Reconciler

_TIMEOUT_SECONDS = 60.0


def record_history(
    url: str,
    instance: str,
    path: str,
    reconciler: Reconciler,
    *,
    start: str,
    end: str | None = None,
    step_seconds: float = 15.0,
    given: LaunchRequest | None = None,
    overwrite: bool = False,
) -> int:
    """Record the target with this `instance` from `start` to `end` (ISO 8601, 14:03, or -2h before now).

    NothingToLookAt when the server does not answer or kept nothing of that time; then no file is left behind.
    """
    from collectors.prometheus import Access, Prometheus
    from ranktop.fleet.history import history
    from ranktop.recording.errors import RecordingError
    from ranktop.recording.facts import facts
    from ranktop.recording.times import last_day, parse_moment
    from ranktop.recording.writer import Writer
    from ranktop.sample import SourceError

    now = time.time()
    try:
        first = parse_moment(start, *last_day(now))
        last = now if end is None else parse_moment(end, first, now)
    except ValueError as problem:
        raise UsageProblem(f"record: {problem}") from problem
    source = Prometheus(Access(checked_url(url), bearer=secret(TOKEN), timeout_seconds=_TIMEOUT_SECONDS))
    samples = history(source, instance, first, last, step_seconds)
    writer: Writer | None = None
    count = 0
    try:
        for sample in samples:
            if writer is None:
                meta = facts(now, interval_seconds=step_seconds, given=given) | {"host": instance}
                writer = Writer(path, meta, overwrite=overwrite)
            writer.append(sample, reconciler.update(sample))
            count += 1
    except SourceError as problem:
        kept = f" ({path} holds what came before)" if count else ""
        raise NothingToLookAt(f"record: {problem}{kept}") from problem
    except RecordingError as problem:
        raise UsageProblem(f"record: {problem}") from problem
    finally:
        source.close()
        if writer is not None:
            writer.close()
    if not count:
        raise NothingToLookAt(f"record: Prometheus has no sglang series of instance {instance!r} in that time")
    click.echo(f"record: {path}: {count} samples of {instance}")
    return OK
