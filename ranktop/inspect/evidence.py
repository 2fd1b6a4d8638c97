"""Everything that was found in the files, sorted by what it is; not yet told which server it belongs to."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct, field

from collectors.hostmem import parse_host
from collectors.kernellog import parse_journal
from collectors.numa import parse_node
from collectors.pressure import parse_pressure
from collectors.requests_log import parse_lines
from ranktop.inspect import pasted
from ranktop.inspect.found import Found, Tree
from ranktop.inspect.gputext import parse_smi_xml, query_gpus, topo_nodes
from ranktop.inspect.hosttext import free_tables, numactl_nodes
from ranktop.inspect.kinds import decoded, kind_of, text_of
from ranktop.inspect.stream import StreamError, read_stream
from ranktop.plan import LaunchRequest, parse_launch
from ranktop.plan.plan import PlanError
from ranktop.sample import Event, Gpus, Host, NumaNode, RequestRecord, Sample, SourceState


class FileNote(Struct, frozen=True):
    """One line about one file: what it was taken for, or why it was not used."""

    name: str
    kind: str
    detail: str = ""


class Text(Struct, frozen=True):
    """What a text says as a server's log. Its events name the file as their server."""

    name: str
    events: tuple[Event, ...]
    failed: tuple[SourceState, ...]


class Evidence(Struct):
    """Filled file by file."""

    notes: list[FileNote] = field(default_factory=list)
    hosts: list[Host] = field(default_factory=list)
    numa: dict[int, NumaNode] = field(default_factory=dict)
    gpus: Gpus | None = None
    gpu_nodes: dict[int, int | None] = field(default_factory=dict)
    pages: list[tuple[str, bytes]] = field(default_factory=list)
    infos: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    launches: list[tuple[str, LaunchRequest]] = field(default_factory=list)
    kernel: list[Event] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)
    requests: list[RequestRecord] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    vmstat: bytes = b""
    written_unix_seconds: float | None = None
    """The newest of the files' own times."""
    file_times: set[float] = field(default_factory=set)
    """The files' own times, which lines without a time carry."""


def gather(found: Iterable[Found | Tree]) -> Evidence:
    """Reads every file once. Never raises for what a file holds."""
    evidence = Evidence()
    for item in found:
        if isinstance(item, Tree):
            _tree(evidence, item)
        elif item.problem is not None:
            evidence.notes.append(FileNote(item.name, "unread", item.problem))
        else:
            _file(evidence, item)
    return evidence


def _tree(evidence: Evidence, item: Tree) -> None:
    if any(tree.kind == item.kind for tree in evidence.trees):
        note = FileNote(item.name, "unread", f"a second /{item.kind} tree: inspect the nodes one at a time")
    else:
        note = FileNote(item.name, f"/{item.kind} tree")
        evidence.trees.append(item)
    evidence.notes.append(note)


def _file(evidence: Evidence, item: Found) -> None:
    kind, detail = kind_of(item.data)
    at = item.written_unix_seconds
    if at is not None:
        evidence.written_unix_seconds = max(evidence.written_unix_seconds or at, at)
        evidence.file_times.add(at)
    reader = _READERS.get(kind)
    if reader is not None:
        told, problem = reader(evidence, item)
        kind, detail = (told, problem)
    if item.skipped_bytes and kind != "unknown":
        detail = "; ".join(part for part in (detail, f"{item.skipped_bytes} bytes in its middle were not read") if part)
    evidence.notes.append(FileNote(item.name, kind, detail))


def _page(evidence: Evidence, item: Found) -> tuple[str, str]:
    evidence.pages.append((item.name, item.data))
    return "metrics page", ""


def _info(evidence: Evidence, item: Found) -> tuple[str, str]:
    evidence.infos.append((item.name, decoded(item.data)))
    return "server info", ""


def _smi(evidence: Evidence, item: Found) -> tuple[str, str]:
    gpus = parse_smi_xml(item.data)
    if gpus is None:
        return "unread", "nvidia-smi XML that is damaged, or declares entities (save it with `nvidia-smi -q -x`)"
    evidence.gpus = gpus
    return "nvidia-smi XML", f"{len(gpus.gpus)} GPUs"


def _journal(evidence: Evidence, item: Found) -> tuple[str, str]:
    events = parse_journal(item.data.splitlines())
    evidence.kernel += events
    return "kernel journal", f"{len(events)} events"


def _launch(evidence: Evidence, item: Found) -> tuple[str, str]:
    try:
        request = parse_launch(item.data.decode("utf-8", "replace"))
    except PlanError as problem:
        return "launch", str(problem)
    if not request.flags:
        return "unknown", "it names SGLang and has no flag that is read"
    evidence.launches.append((item.name, request))
    return "launch", f"{len(request.flags)} flags"


def _meminfo(evidence: Evidence, item: Found) -> tuple[str, str]:
    evidence.hosts.append(parse_host(item.data, evidence.vmstat))
    return "meminfo", ""


def _vmstat(evidence: Evidence, item: Found) -> tuple[str, str]:
    evidence.vmstat = item.data
    if evidence.hosts:
        counters = parse_host(b"", item.data)
        kept = {name: getattr(counters, name) for name in _VMSTAT_FIELDS}
        evidence.hosts[-1] = msgspec.structs.replace(evidence.hosts[-1], **kept)
    return "vmstat", ""


_VMSTAT_FIELDS = (
    "oom_kill_count",
    "swap_in_pages",
    "swap_out_pages",
    "scan_direct_pages",
    "alloc_stall_count",
    "refault_file_pages",
    "foll_pin_acquired_pages",
    "foll_pin_released_pages",
)


def _pressure(evidence: Evidence, item: Found) -> tuple[str, str]:
    """Of the host's memory, unless the file's name says that it is another resource's."""
    pressure = parse_pressure(item.data)
    if evidence.hosts and posixpath.basename(item.name) not in ("cpu", "io"):
        evidence.hosts[-1] = msgspec.structs.replace(evidence.hosts[-1], pressure=pressure)
    return "pressure", ""


def _node_meminfo(evidence: Evidence, item: Found) -> tuple[str, str]:
    number = int(item.data.split(None, 2)[1])
    evidence.numa[number] = parse_node(number, item.data)
    return "meminfo of a NUMA node", ""


def _requests(evidence: Evidence, item: Found) -> tuple[str, str]:
    records = parse_lines(item.data.splitlines())
    evidence.requests += records
    return "request records", f"{len(records)} requests"


def _samples(evidence: Evidence, item: Found) -> tuple[str, str]:
    if evidence.samples:
        return "unread", "samples of a second bundle: inspect the nodes one at a time"
    try:
        samples = read_stream(item.data)
    except StreamError as problem:
        return "unread", str(problem)
    evidence.samples += samples
    return "samples of a bundle", f"{len(samples)} samples"


def _text(evidence: Evidence, item: Found) -> tuple[str, str]:
    lines = text_of(item.data)
    at = item.written_unix_seconds or time.time()
    parts: list[str] = []
    tables = free_tables(lines)
    if tables:
        evidence.hosts += tables
        parts.append("free")
    nodes = numactl_nodes(lines)
    if nodes:
        evidence.numa |= {node.node: node for node in nodes}
        parts.append("numactl -H")
    gpu_nodes = topo_nodes(lines)
    if gpu_nodes:
        evidence.gpu_nodes |= gpu_nodes
        parts.append("nvidia-smi topo -m")
    queried = query_gpus(lines)
    if queried is not None:
        evidence.gpus = evidence.gpus or queried
        parts.append("nvidia-smi --query-gpu")
    kernel = pasted.kernel_events(lines, at)
    if kernel:
        evidence.kernel += kernel
        parts.append("kernel text")
    problems: list[str] = []
    for request in pasted.launches(lines):
        if isinstance(request, PlanError):
            problems.append(str(request))
        else:
            evidence.launches.append((item.name, request))
            parts.append("launch")
    failed = tuple(pasted.failed_sources(lines, item.name, at))
    events = pasted.log_events(lines, item.name, at)
    if failed:
        parts.append("what failed")
    if events:
        parts.append("server log")
    if events or failed:
        evidence.texts.append(Text(item.name, events, failed))
    if not parts and not problems:
        name = posixpath.basename(item.name)
        return "unknown", f"nothing in it that is read ({name})" if name != item.name else "nothing in it that is read"
    return " + ".join(dict.fromkeys(parts)) or "launch", "; ".join(problems)


_READERS = {
    "metrics page": _page,
    "server info": _info,
    "nvidia-smi XML": _smi,
    "kernel journal": _journal,
    "launch": _launch,
    "meminfo": _meminfo,
    "node meminfo": _node_meminfo,
    "vmstat": _vmstat,
    "pressure": _pressure,
    "samples": _samples,
    "request records": _requests,
    "text": _text,
}
