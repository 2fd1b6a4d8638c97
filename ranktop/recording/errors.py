"""Why a recording could not be made or read, as one line for its user."""

from __future__ import annotations

import shlex


def way_out(path: str) -> str:
    """What reads a damaged file, whatever command met it: a file made of it is one that all of them read."""
    return f"`ranktop cut {shlex.quote(path)} --salvage -o NEW.rtop` keeps every row whose checksum still holds"


class RecordingError(Exception):
    """`what: why (what to do)`."""


class Damaged(RecordingError):  # noqa: N818 - a state of one row, not of the program
    """One row whose checksum or content does not hold. Its samples are a gap, nothing else is lost."""
