"""Files that commands write: nobody's file is replaced unasked, no link is followed, nobody else can read them."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO

import click

from ranktop.cli.errors import UsageProblem

OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace a file that is there already.")
_MODE = 0o600


@contextmanager
def new_file(command: str, path: str, overwrite: bool = False) -> Generator[IO[bytes]]:
    """A new file of mode 0600. UsageProblem when something is there already, or it cannot be written.

    `overwrite` allows a regular file to be replaced.
    """
    try:
        with open(_opened(command, path, overwrite), "wb") as file:
            yield file
    except OSError as problem:
        raise UsageProblem(f"{command}: {path}: cannot be written: {problem.strerror} (name another file)") from problem


@contextmanager
def new_text(command: str, path: str, overwrite: bool = False) -> Generator[IO[str]]:
    """The same for text in UTF-8, with line ends as they are written."""
    with new_file(command, path, overwrite) as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
        yield text


def _opened(command: str, path: str, overwrite: bool) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | (0 if overwrite else os.O_EXCL)
    try:
        descriptor = os.open(path, flags, _MODE)
    except FileExistsError:
        raise UsageProblem(f"{command}: {path}: is there already (name another file, or give --overwrite)") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UsageProblem(f"{command}: {path}: is no regular file (name another one)")
    os.ftruncate(descriptor, 0)
    return descriptor
