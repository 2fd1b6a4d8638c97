"""How a command ends: exit codes, and errors as one line."""

from __future__ import annotations

OK = 0
BREACH = 1
USAGE = 2
NOTHING = 3
INTERRUPTED = 130


class UsageProblem(Exception):  # noqa: N818 - says what to do, is no defect
    """Wrong usage, or an input that cannot be used: `what: why (what to do)`. Exit 2."""


class NothingToLookAt(Exception):  # noqa: N818 - an answer, not an error
    """No server, no readable input: one line that says where was looked. Exit 3."""
