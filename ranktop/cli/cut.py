"""`ranktop cut`: a range of a recording, small enough to send."""

from __future__ import annotations

import os

import click

from ranktop.cli.errors import OK, UsageProblem
from ranktop.cli.record_options import FILE, FROM, SALVAGE, TO, opened, said_damage, seq_range


@click.command()
@FILE
@FROM
@TO
@click.option("-o", "--output", required=True, metavar="FILE.rtop", type=click.Path(dir_okay=False))
@click.option("--overwrite", is_flag=True, help="Replace a file that is there already.")
@SALVAGE
def cut(file: str, since: str | None, until: str | None, output: str, overwrite: bool, salvage: bool) -> int:
    """Write the minutes between two times to a recording of its own."""
    from ranktop.recording.cut import cut as cut_range
    from ranktop.recording.errors import RecordingError

    with opened(file, salvage) as recording:
        if os.path.exists(output) and os.path.samefile(file, output):
            raise UsageProblem(f"cut: {output}: is the recording itself (name another file)")
        first, last = seq_range(recording, since, until)
        try:
            samples = cut_range(recording, first, last, output, overwrite)
        except RecordingError as problem:
            raise UsageProblem(f"cut: {problem}") from problem
        said_damage(recording)
    click.echo(f"cut: {output}: {samples} samples, {os.path.getsize(output) / 1e6:.1f} MB")
    return OK
