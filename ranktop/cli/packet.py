"""`ranktop packet`: the promotion packet."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranktop.cli.documents import encode
from ranktop.cli.errors import OK, NothingToLookAt, UsageProblem
from ranktop.cli.output import OVERWRITE, new_text
from ranktop.cli.record_options import DURATION, opened, said_damage
from ranktop.reconcile.wording import counted

if TYPE_CHECKING:
    from ranktop.recording.packet.packet import Attachment, Packet

_PATH = click.Path(dir_okay=False)
_MAX_MANIFEST_BYTES = 1 << 20


@click.command()
@click.argument("files", metavar="FILE.rtop...", type=_PATH, nargs=-1)
@click.option(
    "-o", "--output", metavar="DIR", type=click.Path(file_okay=False), help="Where packet.json and packet.md go."
)
@click.option("--manifest", metavar="FILE", type=_PATH, help="The canary manifest (ranktop plan --manifest).")
@click.option(
    "--attach", metavar="FILE.json", type=_PATH, multiple=True, help="A result of somebody else; may be given again."
)
@click.option(
    "--rollback-within", type=DURATION, default="15m", show_default=True, metavar="TIME", help="The objective."
)
@click.option("--checklist", is_flag=True, help="Print the audits' test lists with their signs instead.")
@OVERWRITE
def packet(
    files: tuple[str, ...],
    output: str | None,
    manifest: str | None,
    attach: tuple[str, ...],
    rollback_within: float,
    checklist: bool,
    overwrite: bool,
) -> int:
    """Write the promotion packet from recordings: what they show, and what they do not."""
    if not files and not checklist:
        raise UsageProblem("packet: no recording given (ranktop packet FILE.rtop... -o DIR, or --checklist)")
    if output is None and not checklist:
        raise UsageProblem("packet: nowhere to write to (give -o DIR)")
    from ranktop.recording.packet.markdown import checklist_text, markdown

    if not files:
        click.echo(checklist_text())
        return OK
    found = _packet(files, _manifest(manifest), [_attachment(path) for path in attach], rollback_within)
    if checklist:
        click.echo(checklist_text(found.checklist))
        return OK
    import msgspec

    assert output is not None
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageProblem(f"packet: {output}: cannot be made: {problem.strerror} (name another folder)") from problem
    for name, text in (
        ("packet.json", encode(msgspec.to_builtins(found)) + "\n"),
        ("packet.md", markdown(found)),
    ):
        with new_text("packet", str(folder / name), overwrite) as file:
            file.write(text)
    click.echo(f"packet: {folder / 'packet.md'}: not shown: {counted(len(found.not_shown), 'part')}")
    return OK


def _packet(
    files: tuple[str, ...], manifest: dict[str, Any] | None, attachments: list[Attachment], rollback_within: float
) -> Packet:
    from ranktop.recording.errors import RecordingError
    from ranktop.recording.facts import reconciler_of
    from ranktop.recording.packet.packet import file_sha256, packet_of, part_of

    parts = []
    with ExitStack() as stack:
        for path in files:
            sha256 = file_sha256(path)
            recording = stack.enter_context(opened(path))
            try:
                parts.append(
                    part_of(recording, reconciler_of(recording.meta), Path(path).stem, sha256, rollback_within)
                )
            except RecordingError as problem:
                raise NothingToLookAt(f"packet: {problem}") from problem
            said_damage(recording)
    return packet_of(parts, manifest, attachments)


def _manifest(path: str | None) -> dict[str, Any] | None:
    from ranktop.plan.manifest import manifest_from_yaml

    if path is None:
        return None
    try:
        return manifest_from_yaml(_bytes(path, _MAX_MANIFEST_BYTES).decode("utf-8"))
    except ValueError as problem:
        raise UsageProblem(f"packet: --manifest {path}: {problem}") from problem


def _attachment(path: str) -> Attachment:
    from ranktop.recording.packet.packet import MAX_ATTACHMENT_BYTES, attachment_of

    try:
        return attachment_of(Path(path).name, _bytes(path, MAX_ATTACHMENT_BYTES))
    except ValueError as problem:
        raise UsageProblem(f"packet: --attach {path}: {problem}") from problem


def _bytes(path: str, at_most: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(at_most + 1)
    except OSError as problem:
        raise UsageProblem(f"packet: {path}: cannot be read: {problem.strerror}") from problem
