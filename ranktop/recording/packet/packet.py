"""One packet from recordings, a manifest and what others attach: JSON for machines, and the same as Markdown."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ranktop.clock import iso_utc
from ranktop.reconcile import Reconciler, Verdict
from ranktop.reconcile.gone import gone_ranks
from ranktop.recording.compare.trial import Trial, trial_from
from ranktop.recording.episodes import Episode, episodes
from ranktop.recording.findings import FindingHistory
from ranktop.recording.notes import MARK, Note
from ranktop.recording.packet.checklist import AFTER_SECONDS, Done, done
from ranktop.recording.packet.proof import Proof, proof
from ranktop.recording.packet.rollback import OBJECTIVE_SECONDS, Rollback, rollback
from ranktop.recording.reader import Recording
from ranktop.recording.thinned import thinned

MAX_ATTACHMENT_BYTES = 1 << 20
NOT_SHOWN = "not shown"


class RankPlace(Struct, frozen=True):
    """Where one rank ran, and its named pools and total HBM at the end, in bytes."""

    server: str
    rank: str
    pid: int | None
    host: str
    gpu: int | None
    numa: int | None
    cpus: str | None
    layers: list[int] | None
    primary_planned_bytes: int | None
    primary_seen_bytes: int | None
    indexer_planned_bytes: int | None
    indexer_seen_bytes: int | None
    hbm_total_bytes: int | None
    hbm_process_bytes: int | None


class Injection(Struct, frozen=True):
    """A mark and what opened soon after it: near in time, not proven to be its effect."""

    at: str
    text: str
    opened: list[str]
    closed_again: bool | None
    """Whether all of that had closed by the end; None when nothing opened."""


class Attachment(Struct, frozen=True):
    """A result that only somebody outside can give: hashed and quoted, never judged."""

    name: str
    sha256: str
    size_bytes: int
    content: Any


class RecordingPart(Struct, frozen=True):
    """What one recording contributes."""

    label: str
    sha256: str
    trial: Trial
    server_args: dict[str, Any]
    """Resolved, by server id, as SGLang reports them; empty where it was not asked."""
    ranks: list[RankPlace]
    l2_proof: Proof
    injections: list[Injection]
    rollback: Rollback
    findings: list[Episode]
    damage: list[str]


class Packet(Struct, frozen=True):
    """The packet. `not_shown` names every part of the audits' list that nothing here shows."""

    schema: int
    recordings: list[RecordingPart]
    manifest: dict[str, Any] | None
    attachments: list[Attachment]
    checklist: list[Done]
    not_shown: list[str]


def part_of(
    recording: Recording,
    reconciler: Reconciler,
    label: str,
    sha256: str,
    objective_seconds: float = OBJECTIVE_SECONDS,
) -> tuple[RecordingPart, list[Note]]:
    """One recording's part and its events; `sha256` of the file (`file_sha256`).

    RecordingError when it holds no readable sample.
    """
    verdicts = list(thinned(recording, reconciler))
    trial = trial_from(recording, [verdict for _, verdict in verdicts])
    notes = recording.events()
    found = episodes(FindingHistory(notes))
    last = verdicts[-1][1]
    part = RecordingPart(
        label,
        sha256,
        trial,
        {server: info.args for server, info in last.sample.infos.items()},
        rank_places(last),
        proof(verdicts, notes),
        _injections(notes, found),
        rollback(verdicts, notes, objective_seconds),
        found,
        recording.damage,
    )
    return part, notes


def packet_of(
    parts: Sequence[tuple[RecordingPart, list[Note]]],
    manifest: Mapping[str, Any] | None,
    attachments: Sequence[Attachment],
) -> Packet:
    """The whole packet."""
    notes = [note for _, found in parts for note in found]
    recordings = [part for part, _ in parts]
    found = dict(manifest) if manifest is not None else None
    return Packet(1, recordings, found, list(attachments), done(notes), _not_shown(recordings, found, attachments))


def attachment_of(name: str, data: bytes) -> Attachment:
    """A file that somebody attaches. ValueError when it is too large or no JSON."""
    if len(data) > MAX_ATTACHMENT_BYTES:
        raise ValueError(f"is larger than {MAX_ATTACHMENT_BYTES} bytes")
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise ValueError(f"is no JSON: {problem}") from problem
    return Attachment(name, hashlib.sha256(data).hexdigest(), len(data), content)


def file_sha256(path: str) -> str:
    """Hash of a file, in hex; empty when it cannot be read.

    Before the recording is opened: closing a file drops the locks that SQLite holds on it in this process.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def rank_places(last: Verdict) -> list[RankPlace]:
    """Of every rank. One that is gone holds nothing, whatever its log says."""
    processes = {rank.pid: rank for rank in (last.sample.processes.ranks if last.sample.processes else ())}
    layers = {
        (server.id, planned.rank): [planned.layers.start, planned.layers.end]
        for server in last.servers
        if server.plan is not None
        for planned in server.plan.ranks
    }
    places: list[RankPlace] = []
    gone = gone_ranks(last)
    for rank in last.ranks:
        is_there = (rank.server, rank.rank) not in gone
        primary, indexer = rank.line("host.primary"), rank.line("host.indexer")
        process = processes.get(rank.pid) if rank.pid is not None else None
        places.append(
            RankPlace(
                rank.server,
                rank.rank,
                rank.pid,
                last.sample.host_name,
                rank.gpu,
                rank.numa,
                process.cpus_allowed if process else None,
                layers.get((rank.server, rank.rank)),
                _whole(primary.planned),
                _whole(primary.seen if is_there else None),
                _whole(indexer.planned),
                _whole(indexer.seen if is_there else None),
                _whole(rank.line("hbm.total").seen),
                _whole(rank.line("hbm.process").seen),
            )
        )
    return places


def _injections(notes: Sequence[Note], found: Sequence[Episode]) -> list[Injection]:
    injections: list[Injection] = []
    for mark in notes:
        if mark.kind != MARK:
            continue
        after = [
            one
            for one in found
            if one.severity != "info" and 0 <= one.begin_unix_seconds - mark.at_unix_seconds <= AFTER_SECONDS
        ]
        closed = all(one.end_unix_seconds is not None for one in after) if after else None
        opened = [f"{one.code} {one.where} ({one.severity})" for one in after]
        injections.append(Injection(iso_utc(mark.at_unix_seconds), mark.text, opened, closed))
    return injections


def _not_shown(
    parts: Sequence[RecordingPart], manifest: dict[str, Any] | None, attachments: Sequence[Attachment]
) -> list[str]:
    missing: list[str] = []
    record = (manifest or {}).get("record", {})
    for name, what in (
        ("container_digest", "immutable image"),
        ("request_corpus_sha256", "corpus and template hashes"),
    ):
        if not isinstance(record, dict) or record.get(name) in (None, "", "to fill"):
            missing.append(f"{what}: {name} of the manifest (--manifest)")
    if not attachments:
        missing.append("correctness: output parity, task acceptance, corruption checks (--attach parity.json)")
    if not any(part.trial.requests and part.trial.requests.populations for part in parts):
        missing.append("service distributions by population (--export-metrics-to-file)")
    if not any(args for part in parts for args in part.server_args.values()):
        missing.append("resolved flags as the server reports them (/server_info)")
    if not any(part.rollback.at for part in parts):
        missing.append("a rollback that was seen to its end")
    if not any(part.l2_proof.shown for part in parts):
        missing.append("a read from L2")
    if len(parts) < 2:
        missing.append("a cache-off control (give its recording too)")
    return missing


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
