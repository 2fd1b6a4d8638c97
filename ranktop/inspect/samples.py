"""The stream of samples that the files amount to, oldest first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from collectors.cgroup import CgroupCollector
from collectors.exposition import ExpositionParser
from collectors.hostmem import HostMemCollector
from collectors.numa import NumaNodesCollector
from collectors.pools import PoolsCollector
from collectors.processes import ProcessesCollector
from collectors.server_info import parse as parse_info
from ranktop.inspect.evidence import Evidence, FileNote
from ranktop.inspect.gputext import with_nodes
from ranktop.inspect.numamaps import saved_placements
from ranktop.inspect.servers import Server
from ranktop.plan import render_launch
from ranktop.reconcile.families import SERIES_NAMES
from ranktop.sample import (
    Event,
    MetricsPage,
    NoData,
    NumaNode,
    Processes,
    RequestRecord,
    Sample,
    ServerInfo,
    SourceError,
    SourceState,
)

_T = TypeVar("_T")

DEFAULT_EVERY_SECONDS = 5.0


def samples_of(evidence: Evidence, servers: Sequence[Server], every_seconds: float | None) -> list[Sample]:
    """Samples of a bundle as they are; else as many as there are successive pages or host tables.

    A bundle's logs are told in its samples. Metrics pages stand `every_seconds` apart. What is not successive is in the
    last sample, but log events come with the first page, as its numbers are read by the launch that the log names.
    """
    if evidence.samples:
        return sorted(evidence.samples, key=lambda sample: sample.at_monotonic_seconds)
    trees = _read_trees(evidence)
    events = _events(evidence, servers)
    last_at = _last_time(evidence, events)
    events = tuple(_timed(event, evidence, last_at) for event in events)
    pages = {server.id: _pages(server) for server in servers}
    most_pages = max(map(len, pages.values()), default=0)
    count = max(most_pages, len(evidence.hosts), 1)
    lasting = _lasting(evidence, servers, trees)
    first_full = 0 if most_pages else count - 1
    found: list[Sample] = []
    for index in range(count):
        at = last_at - (count - 1 - index) * (every_seconds or DEFAULT_EVERY_SECONDS)
        metrics = {
            server: msgspec.structs.replace(page, at_unix_seconds=at)
            for server, told in pages.items()
            if (page := _aligned(told, index, count)) is not None
        }
        # A host table before the last is the node from before the server, and nothing else is known of that time.
        parts: dict[str, Any] = lasting if index >= first_full else {}
        once: dict[str, Any] = {}
        if index == first_full:
            once = {"events": events, "requests": _requests(evidence, servers)}
        found.append(
            Sample(
                at_unix_seconds=at,
                at_monotonic_seconds=at,
                sources=_sources(evidence, servers, metrics, at),
                host=_aligned(evidence.hosts, index, count),
                metrics=metrics,
                **parts,
                **once,
            )
        )
    return found


def _lasting(evidence: Evidence, servers: Sequence[Server], trees: dict[str, Any]) -> dict[str, Any]:
    """Parts that are told once and hold for all samples with a server."""
    parts = dict(trees)
    parts["infos"] = {server.id: _info(server) for server in servers if server.info is not None}
    parts["gpus"] = with_nodes(evidence.gpus, evidence.gpu_nodes)
    if evidence.numa and "numa" not in parts:
        parts["numa"] = tuple(evidence.numa[node] for node in sorted(evidence.numa))
    return parts


def _requests(evidence: Evidence, servers: Sequence[Server]) -> dict[str, tuple[RequestRecord, ...]]:
    """Records name no server: they are of use beside a single one."""
    return {servers[0].id: tuple(evidence.requests)} if evidence.requests and len(servers) == 1 else {}


def _last_time(evidence: Evidence, events: Sequence[Event]) -> float:
    """When the story ends: the newest time that a line tells; a file's own time only says when it was copied."""
    told = [event.at_unix_seconds for event in events if event.at_unix_seconds not in evidence.file_times]
    return max(told, default=evidence.written_unix_seconds or time.time())


def _timed(event: Event, evidence: Evidence, last_at: float) -> Event:
    if event.at_unix_seconds in evidence.file_times:
        return msgspec.structs.replace(event, at_unix_seconds=last_at)
    return event


def _aligned(told: Sequence[_T], index: int, count: int) -> _T | None:
    """The reading at this place when the readings end together; the first one's place before it has none."""
    place = index - (count - len(told))
    return told[place] if place >= 0 else None


def _pages(server: Server) -> list[MetricsPage]:
    parser = ExpositionParser(SERIES_NAMES)
    found: list[MetricsPage] = []
    for _, data in server.pages:
        page = parser.parse(data.decode("utf-8", "replace"))
        found.append(
            MetricsPage(
                server=server.id,
                at_unix_seconds=0.0,
                took_seconds=0.0,
                size_bytes=len(data),
                keys=page.keys,
                values=page.values,
                other_families=page.families - page.wanted_families,
            )
        )
    return found


def _info(server: Server) -> ServerInfo:
    assert server.info is not None
    return parse_info(server.id, server.info, {})


def _events(evidence: Evidence, servers: Sequence[Server]) -> tuple[Event, ...]:
    """All events in the order of time; those of a log carry the id of its server."""
    owner = {name: server.id for server in servers for name in server.texts}
    own = [
        msgspec.structs.replace(event, server=owner.get(text.name, text.name))
        for text in evidence.texts
        for event in text.events
    ]
    # A launch alone is a server too: this event makes it known.
    own += [
        Event(evidence.written_unix_seconds or 0.0, "launch", render_launch(server.launch), server.id)
        for server in servers
        if server.launch is not None
    ]
    return tuple(sorted([*own, *evidence.kernel], key=lambda event: event.at_unix_seconds))


def _sources(
    evidence: Evidence, servers: Sequence[Server], metrics: dict[str, MetricsPage], at: float
) -> tuple[SourceState, ...]:
    owner = {name: server.id for server in servers for name in server.texts}
    failed = [
        msgspec.structs.replace(state, server=owner.get(state.server, state.server) if state.server else None)
        for text in evidence.texts
        for state in text.failed
    ]
    read = [SourceState("metrics", "ok", part="metrics", server=server, at_unix_seconds=at) for server in metrics]
    if evidence.gpus is not None:
        read.append(SourceState("nvml", "ok", part="gpus", at_unix_seconds=at, detail="from nvidia-smi"))
    return tuple(state for state in failed if state.server not in metrics) + tuple(read)


def _read_trees(evidence: Evidence) -> dict[str, Any]:
    """Parts of a sample that captured `/proc` and `/sys` trees hold, each read as on a live node."""
    proc = next((str(tree.root) for tree in evidence.trees if tree.kind == "proc"), None)
    sys = next((str(tree.root) for tree in evidence.trees if tree.kind == "sys"), None)
    nowhere = "/nonexistent"
    parts: dict[str, Any] = {}
    processes: Processes | None = None
    if proc is not None:
        processes = _read(evidence, ProcessesCollector(proc), None)
        if processes is not None and (processes.ranks or processes.servers):
            parts["processes"] = processes
            parts["mappings"] = _read(evidence, PoolsCollector(proc), processes) or {}
            placements = saved_placements(proc, processes)
            if placements:
                parts["placements"] = placements
            parts["cgroups"] = _read(evidence, CgroupCollector(proc, sys or nowhere), processes) or {}
        host = _read(evidence, HostMemCollector(proc, sys or nowhere), processes)
        if host is not None:
            evidence.hosts.append(host)
    if sys is not None:
        nodes: tuple[NumaNode, ...] | None = _read(evidence, NumaNodesCollector(sys, proc or nowhere), processes)
        if nodes:
            parts["numa"] = nodes
    return parts


def _read(evidence: Evidence, collector: Any, processes: Processes | None) -> Any:
    try:
        return collector.read(processes, 0.0)
    except NoData:
        return None
    except SourceError as problem:
        evidence.notes.append(FileNote(collector.name, "unread", str(problem)))
        return None
