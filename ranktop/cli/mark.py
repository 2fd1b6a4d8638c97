"""`ranktop mark`: a mark in a recording, from another shell."""

from __future__ import annotations

import click

from ranktop.cli.errors import OK, UsageProblem
from ranktop.cli.record_options import FILE


@click.command()
@FILE
@click.argument("text", nargs=-1, required=True)
def mark(file: str, text: tuple[str, ...]) -> int:
    """Write TEXT into the recording at this moment: what was injected, changed or seen."""
    from ranktop.recording.errors import RecordingError
    from ranktop.recording.marks import add_mark

    try:
        waits = add_mark(file, " ".join(text))
    except RecordingError as problem:
        raise UsageProblem(f"mark: {problem}") from problem
    click.echo(f"mark: {file}: {'its recorder takes it over' if waits else 'written'}")
    return OK
