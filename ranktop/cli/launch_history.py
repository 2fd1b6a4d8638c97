"""Every launch that ranktop has seen, in one small file, so that the next look can say what changed.

`$XDG_STATE_HOME/ranktop/launches.json`, by default below ~/.local/state; readable by its owner only.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from ranktop.reconcile.launches import KEPT, Launch, extend

MAX_BYTES = 4 << 20
"""A launch is about 20 kB. Beyond this the oldest servers are forgotten; a larger file is not read."""
MAX_SERVERS = 16


class _File(Struct):
    schema: int
    launches: list[Launch]


def history_path(environment: Mapping[str, str] | None = None) -> Path:
    """Where the history is kept."""
    values = os.environ if environment is None else environment
    base = values.get("XDG_STATE_HOME") or str(Path(values.get("HOME", "/")) / ".local" / "state")
    return Path(base) / "ranktop" / "launches.json"


def remembered(path: Path | None = None) -> tuple[Launch, ...]:
    """Launches of earlier runs, oldest first of each server. None where there is no file, or one that is not ours."""
    try:
        with (path or history_path()).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            return ()
        known = msgspec.json.decode(data, type=_File)
    except (OSError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        # A damaged or foreign file only costs the comparison with the launch before.
        return ()
    return tuple(known.launches) if known.schema == 1 else ()


def remember(launches: Iterable[Launch], path: Path | None = None) -> bool:
    """Add launches and write the file in one step; whether it could be written. Nothing is written for nothing new.

    Another ranktop may have written meanwhile: what it added is kept.
    """
    target = path or history_path()
    before = remembered(target)
    by_server: dict[str, tuple[Launch, ...]] = {}
    for launch in sorted((*before, *launches), key=lambda one: one.started_unix_seconds):
        by_server[launch.server] = extend(by_server.get(launch.server, ()), launch)[-KEPT:]
    newest = sorted(by_server.values(), key=lambda known: known[-1].started_unix_seconds)[-MAX_SERVERS:]
    kept = [launch for known in newest for launch in known]
    if kept == list(before):
        return True
    data = msgspec.json.encode(_File(1, kept))
    while len(data) > MAX_BYTES and kept:
        kept = kept[1:]
        data = msgspec.json.encode(_File(1, kept))
    return _write(target, data)


def _write(target: Path, data: bytes) -> bool:
    name = ""
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # mkstemp makes it readable by its owner only.
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, target)
    except OSError:
        with suppress(OSError):
            os.unlink(name)
        return False
    return True
