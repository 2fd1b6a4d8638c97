"""Findings of a whole recording, each from its opening to its closing."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ranktop.finding import SEVERITIES, Severity
from ranktop.reconcile.grouping import rank_span
from ranktop.recording.findings import FindingHistory, Key, key_of


class Episode(Struct, frozen=True):
    """A finding from its opening to its closing (None: open at the end), at its worst."""

    code: str
    severity: Severity
    where: str
    message: str
    advice: str
    begin_unix_seconds: float
    end_unix_seconds: float | None
    begin_seq: int


def episodes(history: FindingHistory) -> list[Episode]:
    """Every finding of the recording with its beginning and end, in the order of the beginnings."""
    running: dict[Key, Episode] = {}
    done: list[Episode] = []
    for change in history.changes:
        now = {key_of(finding): finding for finding in change.open}
        closed = [running.pop(key) for key in list(running) if key not in now]
        done.extend(replace(episode, end_unix_seconds=change.at_unix_seconds) for episode in closed)
        for key, finding in now.items():
            known = running.get(key)
            if known is None or SEVERITIES.index(finding.severity) >= SEVERITIES.index(known.severity):
                running[key] = Episode(
                    finding.code,
                    finding.severity,
                    rank_span(finding.ranks) or finding.server or "node",
                    finding.message,
                    finding.advice,
                    known.begin_unix_seconds if known else change.at_unix_seconds,
                    None,
                    known.begin_seq if known else change.seq,
                )
    return sorted((*done, *running.values()), key=lambda episode: (episode.begin_unix_seconds, episode.code))
