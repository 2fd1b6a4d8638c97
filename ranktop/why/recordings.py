"""The minutes around the newest death in a recording, or its last ones: who vanished, who grew, what was left."""

from __future__ import annotations

from collections.abc import Iterable

from ranktop.plan import Plan
from ranktop.recording.errors import RecordingError
from ranktop.recording.facts import reconciler_of
from ranktop.recording.notes import OPENED, Note
from ranktop.recording.reader import Recording
from ranktop.sample import Event, RankProcess, Sample
from ranktop.why.evidence import Growth, Reading, Recorded

BEFORE_SECONDS = 600.0
AFTER_SECONDS = 60.0
GROWTH_SECONDS = 120.0
_DEATHS = frozenset({"RANK-DEAD", "HOST-OOM-KILL", "GPU-LOST"})


def read_recordings(paths: Iterable[str]) -> tuple[list[Recorded], list[Reading]]:
    """What each recording holds of a death."""
    found: list[Recorded] = []
    readings: list[Reading] = []
    for path in paths:
        source = f"recording {path}"
        try:
            with Recording(path) as recording:
                recorded = _recorded(source, recording)
                damage = recording.damage
        except (RecordingError, ValueError) as problem:
            readings.append(Reading(source, "failed", str(problem)))
            continue
        if recorded is None:
            readings.append(Reading(source, "failed", "holds no sample"))
            continue
        found.append(recorded)
        readings.append(Reading(source, "read", damage[0] if damage else f"{len(recorded.ranks)} ranks"))
    return found, readings


def _recorded(source: str, recording: Recording) -> Recorded | None:
    spans = recording.index.spans
    if not spans:
        return None
    told = [note.at_unix_seconds for note in recording.events() if _is_death(note)]
    end = told[-1] + AFTER_SECONDS if told else max(span.t1 for span in spans)
    reconciler = reconciler_of(recording.meta)
    samples: list[Sample] = []
    events: list[Event] = []
    plans: tuple[tuple[str, Plan], ...] = ()
    first, last = recording.seq_at(end - BEFORE_SECONDS - AFTER_SECONDS), recording.seq_at(end)
    for _, sample in recording.samples(first, last):
        samples.append(sample)
        events += sample.events
        verdict = reconciler.update(sample)
        plans = tuple((one.id, one.plan) for one in verdict.servers if one.plan is not None) or plans
    return follow(source, samples, events, plans) if samples else None


def _is_death(note: Note) -> bool:
    return note.kind == "oom_kill" or (note.kind == OPENED and note.severity == "critical" and note.code in _DEATHS)


def follow(source: str, samples: list[Sample], events: list[Event], plans: tuple[tuple[str, Plan], ...]) -> Recorded:
    """The story of these samples, oldest first."""
    seen: dict[int, tuple[RankProcess, list[tuple[float, int]]]] = {}
    gone: dict[int, tuple[float, RankProcess]] = {}
    for sample in samples:
        if sample.processes is None:
            continue
        present = {rank.pid for rank in sample.processes.ranks if rank.state not in ("Z", "X")}
        for rank in sample.processes.ranks:
            points = seen[rank.pid][1] if rank.pid in seen else []
            if rank.rss_anon_bytes is not None and rank.pid in present:
                points.append((sample.at_unix_seconds, rank.rss_anon_bytes))
            seen[rank.pid] = (rank, points)
        for pid, (rank, _) in seen.items():
            if pid not in present:
                gone.setdefault(pid, (sample.at_unix_seconds, rank))
    # The time before the first death is what explains it; without one, the end of the recording.
    end = min((at for at, _ in gone.values()), default=samples[-1].at_unix_seconds)
    before = [sample for sample in samples if end - GROWTH_SECONDS <= sample.at_unix_seconds <= end]
    available = [sample.host.available_bytes for sample in before if sample.host is not None]
    known = [value for value in available if value is not None]
    group = next((group for sample in reversed(before) for group in sample.cgroups.values()), None)
    return Recorded(
        source,
        tuple(events),
        tuple(gone.values()),
        tuple(rank for rank, _ in seen.values()),
        tuple(growth for rank, points in seen.values() if (growth := _growth(rank, points, end)) is not None),
        max(known) - known[-1] if known else None,
        known[-1] if known else None,
        group.limit_bytes if group else None,
        group.limit_path if group else None,
        plans,
        samples[0].at_unix_seconds,
    )


def _growth(rank: RankProcess, points: list[tuple[float, int]], end: float) -> Growth | None:
    window = [(at, value) for at, value in points if end - GROWTH_SECONDS <= at <= end]
    if len(window) < 2:
        return None
    least = min(value for _, value in window)
    return Growth(rank.server, str(rank.tag), rank.pid, window[-1][1] - least, window[-1][0] - window[0][0])
