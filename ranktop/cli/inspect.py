"""`ranktop inspect`: the verdicts of `check`, from files that somebody sent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from ranktop.cli.check_text import check_text
from ranktop.cli.documents import check_document, encode
from ranktop.cli.errors import NothingToLookAt, UsageProblem
from ranktop.finding import exit_code
from ranktop.folding import folded
from ranktop.inspect.evidence import FileNote
from ranktop.inspect.report import Inspection, inspect_paths
from ranktop.plan import LaunchRequest, parse_launch, profile_for
from ranktop.printable import printable

UNUSED = ("unknown", "unread")
_UNUSED_SHOWN = 20
_WIDTH = 80
_MAX_LAUNCH_BYTES = 1 << 20


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
@click.option(
    "--every", type=float, metavar="SECONDS", help="Time between successive metrics pages, as given. Default: 5."
)
@click.option("--sglang", metavar="VERSION", help="SGLang version, where no file tells it.")
@click.option("--launch", type=click.Path(dir_okay=False), metavar="FILE", help="Launch line, where no file tells it.")
def inspect(paths: tuple[str, ...], as_json: bool, every: float | None, sglang: str | None, launch: str | None) -> int:
    """Judge files: logs, metrics pages, server_info, nvidia-smi -q -x and topo -m, kernel text, free, numactl -H,
    launch scripts, pod YAML, copies of /proc and /sys, folders and tar files of these, a bundle.

    What a file is, is told by its content. Exit 1 when something is at breach or worse, 3 when nothing could be read.
    """
    if every is not None and not (math.isfinite(every) and 0 < every <= 86_400):
        raise UsageProblem(f"inspect: --every {every}: seconds between 0 and 86400 are accepted")
    if sglang is not None:
        profile_for(sglang)
    found = inspect_paths(
        paths, every_seconds=every, sglang=sglang, launch=_launch(launch) if launch is not None else None
    )
    if not has_anything(found):
        raise NothingToLookAt(_why_nothing(found))
    click.echo(encode(inspect_document(found)) if as_json else inspect_text(found))
    return exit_code(found.verdict.findings)


def inspect_document(found: Inspection) -> dict[str, Any]:
    """`inspect --json`: that of `check`, with the files and what is missing."""
    return check_document(found.verdict, found.window_seconds) | {
        "files": [{"name": note.name, "kind": note.kind, "detail": note.detail} for note in found.files],
        "missing": list(found.missing),
    }


def inspect_text(found: Inspection) -> str:
    """The text of `check`, with the files and what is missing. Control characters of the files are shown as escapes."""
    parts = [check_text(found.verdict)] if found.verdict.servers or found.verdict.findings else []
    pools = found.verdict.node.line("host.pools")
    if pools.seen is not None:
        planned = f"{pools.planned / 1e9:.2f} GB planned, " if pools.planned is not None else ""
        seen = f"{pools.seen / 1e9:.2f} GB ({pools.seen / 2**30:.1f} GiB) seen"
        parts.append(_wrapped(f"pools of all ranks: {planned}{seen}: {pools.detail}"))
    for server in found.verdict.servers:
        told = server.calibration
        if told is not None and told.fits is not None:
            also = f" (also {', '.join(told.also_fits)})" if told.also_fits else ""
            draft = f", draft rows of {told.draft_row_bytes} bytes" if told.draft_row_bytes else ""
            index = f", {told.index_layers} index layers" if told.index_layers else ""
            rows = f"rows of {told.row_bytes} bytes{index}{draft}"
            parts.append(_wrapped(f"{server.id}: the logged pools are those of sglang {told.fits}{also}: {rows}"))
    parts.append("\n".join(("files:", *(f"  {line}" for line in _notes(found.files)))))
    if found.missing:
        parts.append("\n".join(("to say more:", *(_wrapped(line, "  ") for line in found.missing))))
    return printable("\n\n".join(parts))


def _wrapped(text: str, indent: str = "") -> str:
    return "\n".join(folded(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  "))


def has_anything(found: Inspection) -> bool:
    """Whether any file was of use."""
    return any(note.kind not in UNUSED for note in found.files)


def _why_nothing(found: Inspection) -> str:
    first = found.files[0] if found.files else None
    others = f", and {len(found.files) - 1} more files" if len(found.files) > 1 else ""
    said = f"{first.name}: {first.detail or first.kind}{others}" if first is not None else "no files there"
    return printable(f"inspect: nothing to look at: {said} (see `ranktop inspect --help` for what is read)")


def _notes(files: Sequence[FileNote]) -> Iterator[str]:
    """The files that were of use, and some of those that were not."""
    unused = [note for note in files if note.kind in UNUSED]
    yield from (_note(note) for note in files if note.kind not in UNUSED)
    yield from (_note(note) for note in unused[:_UNUSED_SHOWN])
    if len(unused) > _UNUSED_SHOWN:
        yield f"and {len(unused) - _UNUSED_SHOWN} more that nothing was read from (all are in --json)"


def _note(note: FileNote) -> str:
    return f"{note.name}: {note.kind}" + (f" ({note.detail})" if note.detail else "")


def _launch(path: str) -> LaunchRequest:
    try:
        with Path(path).open("rb") as file:
            return parse_launch(file.read(_MAX_LAUNCH_BYTES).decode("utf-8", "replace"))
    except OSError as problem:
        raise UsageProblem(f"inspect: --launch {path}: {problem.strerror} (give a file with the launch line)") from None
