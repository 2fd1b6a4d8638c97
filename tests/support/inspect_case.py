"""What a case of the table is: files that somebody could have sent, and what `inspect` must say of them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ranktop.inspect.report import Inspection, inspect_paths


class Code(NamedTuple):
    """A finding that must be there. `evidence` are values that it must carry."""

    code: str
    severity: str
    ranks: tuple[str, ...] | None = None
    evidence: Mapping[str, Any] = {}


class Seen(NamedTuple):
    """A line that must be there; `rank` is empty for the node's."""

    rank: str
    line: str
    seen: float | None
    planned: float | None = None
    status: str = "ok"


class Case(NamedTuple):
    """One report of the case log, by its number there."""

    number: int
    asks: str
    files: Mapping[str, str | bytes] = {}
    codes: tuple[Code, ...] = ()
    lines: tuple[Seen, ...] = ()
    holds: Callable[[Inspection], object] | None = None
    never: tuple[str, ...] = ()
    """Codes that must not be there."""
    options: Mapping[str, Any] = {}
    not_shown: str = ""
    """Why it cannot be shown from files."""

    @property
    def id(self) -> str:
        return f"{self.number:02d} {self.asks}"


def write(files: Mapping[str, str | bytes], folder: Path) -> list[str]:
    """The files on disk, and the paths to give: each file, or the top folder of those in folders."""
    paths: dict[str, None] = {}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        paths[str(folder / name.split("/")[0])] = None
    return list(paths)


def judged(case: Case, folder: Path) -> Inspection:
    """What `inspect` says of the case's files."""
    return inspect_paths(write(case.files, folder), **case.options)


def tar(files: Mapping[str, str | bytes], mode: str = "w:gz") -> bytes:
    """The files as an archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()
