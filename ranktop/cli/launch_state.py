"""The launches that ranktop has seen, kept between its runs: `$XDG_STATE_HOME/ranktop/launches.json`.

LAUNCH-CHANGED compares a start with the one before it, which may lie days and a reboot back.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ranktop.reconcile.launches import Launch

MAX_BYTES = 4 << 20
_MAX_SERVERS = 64


def state_path() -> Path:
    """Where the file lies: the XDG base directories, `~/.local/state` without them."""
    base = os.environ.get("XDG_STATE_HOME", "")
    # The specification has relative paths ignored.
    folder = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return folder / "ranktop" / "launches.json"


def load_launches(path: Path) -> tuple[Launch, ...]:
    """The launches of the file, oldest first of each server; none where it is missing, too large or not ours."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        return tuple(msgspec.json.decode(raw, type=list[Launch])) if len(raw) <= MAX_BYTES else ()
    except (OSError, msgspec.DecodeError):
        return ()


def save_launches(path: Path, launches: Sequence[Launch]) -> None:
    """Write the file anew, readable by its owner alone. Of very many servers those started last are kept.

    Raises OSError where that cannot be: the caller decides whether it matters.
    """
    newest: dict[str, float] = {}
    for launch in launches:
        newest[launch.server] = max(launch.started_unix_seconds, newest.get(launch.server, 0.0))
    kept = set(sorted(newest, key=lambda server: newest[server])[-_MAX_SERVERS:])
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Two ranktops may end at once: each replaces the whole file.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".launches-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode([launch for launch in launches if launch.server in kept]))
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
