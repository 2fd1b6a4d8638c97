"""What one recording shows, in the numbers that gates and sweeps compare."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from msgspec import Struct

from ranktop.finding import SEVERITIES, Severity
from ranktop.plan.plan import ResolvedLaunch
from ranktop.reconcile import Reconciler, Verdict
from ranktop.recording.compare.populations import Requests, requests_of
from ranktop.recording.episodes import Episode, episodes
from ranktop.recording.errors import RecordingError
from ranktop.recording.findings import FindingHistory
from ranktop.recording.reader import Recording
from ranktop.recording.thinned import thinned

EDGE_SECONDS = 60.0
"""The beginning and the end of a recording, for what must be back at its baseline."""


class Seen(Struct, frozen=True):
    """One finding over the recording, at its worst."""

    code: str
    severity: Severity
    episodes: int
    is_open_at_end: bool


class Trial(Struct, frozen=True):
    """None: the recording does not show it. Bytes a second and shares are medians over the samples with traffic."""

    name: str
    version: str | None
    model: str | None
    launch: ResolvedLaunch | None
    seconds: float
    samples: int
    missing_samples: int
    ranks: int
    pool_bytes: int | None
    """Host pools of all ranks, as planned."""
    requests: Requests | None
    tokens_per_second: float | None
    accept_length: float | None
    device_hit: float | None
    host_hit: float | None
    storage_hit: float | None
    backup_bytes_per_second: float | None
    load_back_bytes_per_second: float | None
    pressure_begin_percent: float | None
    pressure_end_percent: float | None
    pressure_max_percent: float | None
    available_begin_bytes: int | None
    available_end_bytes: int | None
    findings: list[Seen]

    def worst(self, codes: Iterable[str]) -> Seen | None:
        """The worst of these findings that was seen."""
        wanted = set(codes)
        found = [seen for seen in self.findings if seen.code in wanted]
        return max(found, key=lambda seen: SEVERITIES.index(seen.severity), default=None)


def trial_of(recording: Recording, reconciler: Reconciler) -> Trial:
    """The numbers of one recording. RecordingError when it holds no readable sample."""
    return trial_from(recording, [verdict for _, verdict in thinned(recording, reconciler)])


def trial_from(recording: Recording, verdicts: Sequence[Verdict]) -> Trial:
    """As `trial_of`, from verdicts that are there already."""
    if not verdicts:
        raise RecordingError(f"{recording.path}: holds no readable sample")
    index = recording.index
    first, last = verdicts[0], verdicts[-1]
    planned = next((server for server in last.servers if server.plan is not None), None)
    notes = recording.events()
    begin = [one for one in verdicts if _at(one) - _at(first) <= EDGE_SECONDS]
    end = [one for one in verdicts if _at(last) - _at(one) <= EDGE_SECONDS]
    busy = [one for one in verdicts if any((server.service.running or 0) > 0 for server in one.servers)]
    pressures = [_pressure(one) for one in verdicts]
    return Trial(
        name=PurePath(recording.path).name,
        version=last.servers[0].version if last.servers else None,
        model=last.servers[0].model if last.servers else None,
        launch=planned.plan.launch if planned is not None and planned.plan is not None else None,
        seconds=_at(last) - _at(first),
        samples=index.count,
        missing_samples=index.missing(),
        ranks=len(last.ranks),
        pool_bytes=_pool_bytes(last),
        requests=requests_of(recording, notes, index.seq(0), index.seq(index.count)),
        tokens_per_second=_median([_sum(server.service.tokens_per_second for server in one.servers) for one in busy]),
        accept_length=_median([rank.line("spec.accept_length").seen or None for one in busy for rank in one.ranks]),
        device_hit=_median([one.tiers.device_hit for one in busy]),
        host_hit=_median([one.tiers.host_hit for one in busy]),
        storage_hit=_median([one.tiers.storage_hit for one in busy]),
        backup_bytes_per_second=_median([one.transfers.backup_bytes_per_second for one in busy]),
        load_back_bytes_per_second=_median([one.transfers.load_back_bytes_per_second for one in busy]),
        pressure_begin_percent=_median(list(map(_pressure, begin))),
        pressure_end_percent=_median(list(map(_pressure, end))),
        pressure_max_percent=max((value for value in pressures if value is not None), default=None),
        available_begin_bytes=_whole(_median([one.node.line("host.available").seen for one in begin])),
        available_end_bytes=_whole(_median([one.node.line("host.available").seen for one in end])),
        findings=_findings(FindingHistory(notes)),
    )


def _findings(history: FindingHistory) -> list[Seen]:
    by_code: dict[str, list[Episode]] = {}
    for episode in episodes(history):
        by_code.setdefault(episode.code, []).append(episode)
    return [_seen(code, found) for code, found in sorted(by_code.items())]


def _seen(code: str, found: list[Episode]) -> Seen:
    worst = max(found, key=lambda episode: SEVERITIES.index(episode.severity))
    return Seen(code, worst.severity, len(found), any(episode.end_unix_seconds is None for episode in found))


def _at(verdict: Verdict) -> float:
    return verdict.sample.at_unix_seconds


def _pressure(verdict: Verdict) -> float | None:
    return verdict.node.line("host.pressure").seen


def _pool_bytes(verdict: Verdict) -> int | None:
    planned = [
        line.planned for rank in verdict.ranks for line in (rank.line("host.primary"), rank.line("host.indexer"))
    ]
    return _whole(_sum(planned))


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
