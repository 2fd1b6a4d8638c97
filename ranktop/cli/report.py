"""`ranktop report`: a recording as one page for the post-mortem."""

from __future__ import annotations

import os

import click

from ranktop.cli.errors import OK, NothingToLookAt
from ranktop.cli.output import OVERWRITE, new_text
from ranktop.cli.record_options import FILE, SALVAGE, opened, said_damage


@click.command()
@FILE
@click.option("-o", "--output", required=True, metavar="FILE.html", type=click.Path(dir_okay=False))
@OVERWRITE
@SALVAGE
def report(file: str, output: str, overwrite: bool, salvage: bool) -> int:
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
    with new_text("report", output, overwrite) as out:
        out.write(text)
    click.echo(f"report: {output}: {os.path.getsize(output) / 1e6:.2f} MB")
    return OK
