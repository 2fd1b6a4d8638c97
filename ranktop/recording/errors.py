"""Why a recording could not be made or read, as one line for its user."""

from __future__ import annotations


class RecordingError(Exception):
    """`what: why (what to do)`."""


class Damaged(RecordingError):  # noqa: N818 - a state of one row, not of the program
    """One row whose checksum or content does not hold. Its samples are a gap, nothing else is lost."""
