"""`ranktop report`: a recording as one page for the post-mortem."""

from __future__ import annotations

import os

import click

from ranktop.cli.errors import OK, NothingToLookAt, UsageProblem
from ranktop.cli.record_options import FILE, SALVAGE, opened, said_damage


@click.command()
@FILE
@click.option("-o", "--output", required=True, metavar="FILE.html", type=click.Path(dir_okay=False))
@SALVAGE
def report(file: str, output: str, salvage: bool) -> int:
    """Write one HTML file that needs nothing else: launch, plan against seen, charts, findings, events."""
    from ranktop.recording.errors import RecordingError
    from ranktop.recording.facts import reconciler_of
    from ranktop.recording.report.build import report as build

    with opened(file, salvage) as recording:
        try:
            text = build(recording, reconciler_of(recording.meta))
        except RecordingError as problem:
            raise NothingToLookAt(f"report: {problem}") from problem
        said_damage(recording)
    try:
        with open(output, "w", encoding="utf-8") as out:
            out.write(text)
    except OSError as problem:
        raise UsageProblem(f"report: {output}: cannot be written: {problem.strerror}") from problem
    click.echo(f"report: {output}: {os.path.getsize(output) / 1e6:.2f} MB")
    return OK
