"""The recording that a recorder of this node is writing, or wrote last: found without asking anybody.

A recorder holds its file locked (creation.py), and the kernel tells who holds which lock. Files that nobody writes are
looked for where the systemd unit of docs/recording.md puts them. Only reads; another user's file is left out.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress

from ranktop.recording.connection import FAILURES, connect
from ranktop.recording.errors import RecordingError
from ranktop.recording.facts import BOOT, HOST, boot_id
from ranktop.recording.tables import META

SUFFIX = ".rtop"
DEFAULT_FOLDER = "/var/lib/ranktop"
"""`StateDirectory=ranktop` of the unit."""

_MAX_FILES = 50
_MAX_DESCRIPTORS = 4096


def find_recordings(folders: Sequence[str] = (DEFAULT_FOLDER,)) -> Iterator[str]:
    """Files of this host and boot: those that are being written, the newest first; then the newest in these folders."""
    held = _newest(held_recordings())
    yield from filter(_is_of_this_boot, held)
    yield from (path for path in _newest(_in_folders(folders)) if path not in held and _is_of_this_boot(path))


def held_recordings() -> Iterator[str]:
    """Paths that end in `.rtop` of files that some process holds locked as recorders do (proc_locks(5))."""
    try:
        with open("/proc/locks", encoding="ascii") as file:
            lines = [line.split() for line in file]
    except OSError:
        return
    for words in lines:
        # `1: FLOCK  ADVISORY  WRITE 4242 fe:00:1234 0 EOF`; a lock that is waited for has `->` as its second word.
        if len(words) == 8 and words[1] == "FLOCK" and words[3] == "WRITE":
            yield from _descriptors(words[4], words[5])


def _descriptors(pid: str, device: str) -> Iterator[str]:
    folder = f"/proc/{pid}/fd"
    with suppress(OSError):
        for number in os.listdir(folder)[:_MAX_DESCRIPTORS]:
            with suppress(OSError):
                path = os.readlink(f"{folder}/{number}")
                status = os.stat(path) if path.endswith(SUFFIX) else None
                if status and device == f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}":
                    yield path
                    return


def _in_folders(folders: Sequence[str]) -> Iterator[str]:
    for folder in folders:
        with suppress(OSError):
            yield from (os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(SUFFIX))


def _newest(paths: Iterator[str]) -> list[str]:
    found: dict[str, float] = {}
    for path in paths:
        with suppress(OSError):
            # While it is written only its log is touched.
            found[path] = max(os.stat(name).st_mtime for name in (path, f"{path}-wal") if os.path.exists(name))
    return sorted(found, key=lambda path: found[path], reverse=True)[:_MAX_FILES]


def _is_of_this_boot(path: str) -> bool:
    try:
        with closing(connect(path)) as db:
            rows = db.execute(f"{META.select} WHERE k IN (?, ?)", (HOST, BOOT)).fetchall()
    except (RecordingError, *FAILURES):
        return False
    facts = {row[0]: row[1] for row in rows if META.holds(row)}
    return bool(facts.get(BOOT)) and (facts.get(HOST), facts.get(BOOT)) == (platform.node(), boot_id())
