"""The findings that the recorder saw, from the event rows: open when, and where they differ from a replay."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from ranktop.finding import Finding, Severity, worst
from ranktop.recording.notes import CHANGED, CLOSED, OPENED, Note

Key = tuple[str, str | None, str]
LOUD: tuple[Severity, ...] = ("breach", "critical")


class Change(NamedTuple):
    """From that sample on these findings are open."""

    seq: int
    at_unix_seconds: float
    open: tuple[Finding, ...]


class Differences(NamedTuple):
    """What one side has and the other has not, by code, server and scope."""

    only_recorded: tuple[Finding, ...]
    only_replayed: tuple[Finding, ...]


class FindingHistory:
    """Open findings over a recording. A row that is no finding is left out."""

    def __init__(self, notes: Iterable[Note]) -> None:
        self.changes: list[Change] = []
        state: dict[Key, Finding] = {}
        for note in notes:
            if note.kind not in (OPENED, CHANGED, CLOSED) or note.json is None:
                continue
            try:
                finding = msgspec.json.decode(note.json, type=Finding)
            except (msgspec.MsgspecError, RecursionError):
                continue
            if note.kind == CLOSED:
                state.pop(key_of(finding), None)
            else:
                state[key_of(finding)] = finding
            change = Change(note.seq, note.at_unix_seconds, tuple(state.values()))
            if self.changes and self.changes[-1].seq == note.seq:
                self.changes[-1] = change
            else:
                self.changes.append(change)
        self._seqs = [change.seq for change in self.changes]

    def open_at(self, seq: int) -> tuple[Finding, ...]:
        """The findings that were open when that sample was recorded."""
        place = bisect_right(self._seqs, seq) - 1
        return self.changes[place].open if place >= 0 else ()

    def breaches(self) -> list[Change]:
        """The changes at which a breach or something critical opened, or more of it."""
        found: list[Change] = []
        before: set[Key] = set()
        for change in self.changes:
            loud = {key_of(finding) for finding in change.open if finding.severity in LOUD}
            if loud - before:
                found.append(change)
            before = loud
        return found

    def severities(self) -> list[tuple[float, Severity | None]]:
        """(time, worst severity above info from then on, None when there is none), for the strip over time."""
        found: list[tuple[float, Severity | None]] = []
        for change in self.changes:
            severity = worst(change.open)
            severity = None if severity == "info" else severity
            if not found or found[-1][1] != severity:
                found.append((change.at_unix_seconds, severity))
        return found


def key_of(finding: Finding) -> Key:
    """What makes two findings the same one."""
    return (finding.code, finding.server, finding.scope)


def differences(recorded: Sequence[Finding], replayed: Sequence[Finding]) -> Differences:
    """Findings that only one side has."""
    then, now = {key_of(finding) for finding in recorded}, {key_of(finding) for finding in replayed}
    return Differences(
        tuple(finding for finding in recorded if key_of(finding) not in now),
        tuple(finding for finding in replayed if key_of(finding) not in then),
    )
