"""A node in one file for somebody else: raw samples and logs, redacted, bounded, listed."""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from collectors.serverlog_attach import Backlog
from collectors.serverlog_find import LogSource
from ranktop.inspect.found import MAX_LINE_CHARACTERS
from ranktop.inspect.redact import Redactor
from ranktop.inspect.stream import write_stream
from ranktop.sample import Sample

CONTENTS = "CONTENTS.txt"
SAMPLES = "samples.jsonl"
_SEARCH_SECONDS = 2.0
_MAX_TEXT_BYTES = 1 << 20


class Item(NamedTuple):
    """One member of a bundle and what it is."""

    name: str
    data: bytes
    what: str


class BundleError(OSError):
    """The file cannot be written: one line that says why."""


def samples_item(samples: Sequence[Sample], redactor: Redactor) -> Item:
    """The samples as they were read, without secrets and addresses."""
    clean = [msgspec.convert(redactor.value(msgspec.to_builtins(sample)), Sample) for sample in samples]
    named = [msgspec.structs.replace(sample, host_name="node") for sample in clean]
    what = "what every source said, sample by sample (`ranktop inspect` judges these)"
    return Item(SAMPLES, write_stream(named), what)


def log_item(server: str, source: LogSource, redactor: Redactor) -> Item | None:
    """The newest start of a server's log and its end, about 2 MiB. None for a log that is a command's output."""
    if source.path is None:
        return None
    backlog = Backlog(source.path)
    try:
        lines = [*backlog.search(_SEARCH_SECONDS), *backlog.tail()]
    finally:
        backlog.close()
    return Item(f"logs/{_plain(redactor.text(server))}.log", _lines(lines, redactor), f"log of {redactor.text(server)}")


def text_item(name: str, path: Path, what: str, redactor: Redactor) -> Item | None:
    """A small text file of the host, None where it is not there."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_TEXT_BYTES)
    except OSError:
        return None
    return Item(name, _lines(data.split(b"\n"), redactor), what)


def write_bundle(path: Path, items: Sequence[Item]) -> str:
    """Writes a new file of mode 0600 and returns the list of what it holds. Raises BundleError; overwrites nothing."""
    contents = contents_of(items)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BundleError(f"{path}: {error.strerror} (give a new name; nothing is overwritten)") from None
    try:
        with os.fdopen(fd, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for item in (Item(CONTENTS, contents.encode(), ""), *items):
                member = tarfile.TarInfo(item.name)
                member.size, member.mode, member.mtime = len(item.data), 0o600, int(time.time())
                archive.addfile(member, io.BytesIO(item.data))
    except OSError as error:
        path.unlink(missing_ok=True)
        raise BundleError(f"{path}: {error.strerror} (is there room?)") from None
    return contents


def contents_of(items: Sequence[Item]) -> str:
    """The list that travels with the bundle."""
    lines = ["Made by ranktop bundle. Secrets are dropped, addresses and host names have stand-ins (host-1, node).", ""]
    lines += [f"{len(item.data):>10} bytes  {item.name}: {item.what}" for item in items]
    lines += ["", "Not taken: environments, prompts, requests, other processes, the raw metrics page."]
    return "\n".join(lines) + "\n"


def _lines(lines: Sequence[bytes], redactor: Redactor) -> bytes:
    text = (redactor.text(line[:MAX_LINE_CHARACTERS].decode("utf-8", "replace")) for line in lines)
    return "\n".join(text).encode()


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)[:100]
