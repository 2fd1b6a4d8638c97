"""Server logs around a death: those that the user names, and what the kubelet keeps of earlier containers."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC
from pathlib import Path

from collectors.kernellog import parse_text
from collectors.serverlog_attach import Backlog
from collectors.serverlog_events import LogAssembler
from ranktop.reconcile.logged import LoggedServer, fold
from ranktop.sample import Event, SourceError
from ranktop.why.evidence import KernelLog, Killed, Reading, ServerLog
from ranktop.why.kernel import read_end

MAX_LOG_BYTES = 8 << 20
"""Of a longer log its newest start and its end are read."""
MAX_CONTAINERS = 64
_FILES_OF_A_CONTAINER = 2
_LINES_AT_ONCE = 1000
_STEP_BYTES = 1 << 20
_MAX_STEPS = 256
"""Of a compressed log that is longer, what comes after 256 MiB is not read."""

_PEEK_BYTES = 1 << 16
_SEARCH_SECONDS = 2.0
_MARKS = re.compile(rb"sglang|server_args=|(?:Prefill|Decode) batch|[ \[]TP\d+\]")
_SHELL = re.compile(r"(?:^|[\s:])(\d{1,10})\s+(?:\(core dumped\)\s+)?Killed\b")
_PARENT = re.compile(r"Scheduler or DataParallelController (\d{1,10}) terminated with (-?\d{1,4})\b")
_KERNEL = re.compile(r"Out of memory:|out of memory:|oom-kill:|NVRM: Xid|oom\.group set")
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)\b")


def read_logs(paths: Iterable[Path]) -> tuple[list[ServerLog], list[KernelLog], list[Reading]]:
    """Each file as a server's log. Kernel messages that were pasted into one count as what they are."""
    logs: list[ServerLog] = []
    kernel: list[KernelLog] = []
    readings: list[Reading] = []
    for path in paths:
        source = f"log {path}"
        try:
            data, written = _content(path)
        except (OSError, EOFError, SourceError, zlib.error) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            readings.append(Reading(source, "failed", f"cannot be read: {reason}"))
            continue
        lines = data.decode("utf-8", "replace").split("\n")
        log = server_log(source, lines, written)
        told = parse_text("\n".join(line for line in lines if _KERNEL.search(line)), at_unix_seconds=written)
        if told:
            kernel.append(KernelLog(source, tuple(told)))
        logs.append(log)
        starts = sum(event.kind == "server_args" for event in log.events)
        readings.append(Reading(source, "read", f"{len(log.events)} events, {starts} starts"))
    return logs, kernel, readings


def container_logs(pods_folder: Path, since_unix_seconds: float) -> list[Path]:
    """The newest two files of every container that wrote since then, `POD/CONTAINER/N.log` and their rotations."""
    containers: list[tuple[float, list[Path]]] = []
    for folder in (inner for pod in _folders(pods_folder) for inner in _folders(pod)):
        files = [(path, _written(path)) for path in _listed(folder) if re.match(r"\d+\.log", path.name)]
        newest = sorted((item for item in files if item[1] >= since_unix_seconds), key=lambda item: -item[1])
        if newest:
            containers.append((newest[0][1], [path for path, _ in newest[:_FILES_OF_A_CONTAINER]]))
    containers.sort(key=lambda item: -item[0])
    return [path for _, paths in containers[:MAX_CONTAINERS] for path in paths if _looks_like_sglang(path)]


def server_log(source: str, lines: list[str], written_unix_seconds: float) -> ServerLog:
    """The events of one log. Stamps without a zone are UTC, unless the file's own time tells."""
    assembler = LogAssembler(source)
    assembler.set_zone(next((line for line in reversed(lines) if line.strip()), ""), written_unix_seconds)
    assembler.zone = assembler.zone or UTC
    events: list[Event] = []
    # In pieces: the events of one piece are bounded.
    for start in range(0, len(lines), _LINES_AT_ONCE):
        assembler.feed(lines[start : start + _LINES_AT_ONCE], written_unix_seconds)
        events.extend(assembler.take())
    return ServerLog(
        source,
        tuple(events),
        tuple(_killed(lines, written_unix_seconds)),
        fold(LoggedServer(), events),
    )


def _killed(lines: Iterable[str], written_unix_seconds: float) -> Iterator[Killed]:
    for line in lines:
        if (match := _PARENT.search(line)) and match[2] != "0":
            status = int(match[2])
            yield Killed(_time(line, written_unix_seconds), int(match[1]), line.strip()[:200], status in (-9, 137))
        elif (match := _SHELL.search(line)) and "Killed process" not in line:
            yield Killed(_time(line, written_unix_seconds), int(match[1]), line.strip()[:200], True)


def _time(line: str, written_unix_seconds: float) -> float:
    """A bare clock is of the day on which the file was written, or the day before."""
    match = _CLOCK.search(line[:64])
    if match is None:
        return written_unix_seconds
    clock = int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])
    at = written_unix_seconds - written_unix_seconds % 86400 + clock
    return at if at <= written_unix_seconds + 60 else at - 86400


def _looks_like_sglang(path: Path) -> bool:
    """By the beginning and the end of a file: other programs' logs are not read further."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                return _MARKS.search(file.read(_PEEK_BYTES)) is not None
        with path.open("rb") as file:
            head = file.read(_PEEK_BYTES)
            file.seek(max(len(head), path.stat().st_size - _PEEK_BYTES))
            return _MARKS.search(head + file.read(_PEEK_BYTES)) is not None
    except (OSError, EOFError, zlib.error):
        # Told when it is read.
        return True


def _content(path: Path) -> tuple[bytes, float]:
    if path.suffix != ".gz":
        data, written = read_end(path, MAX_LOG_BYTES)
        return (data if len(data) < MAX_LOG_BYTES else _last_start(path)), written
    kept: deque[bytes] = deque(maxlen=MAX_LOG_BYTES // _STEP_BYTES)
    with gzip.open(path) as file:
        for _ in range(_MAX_STEPS):
            data = file.read(_STEP_BYTES)
            if not data:
                break
            kept.append(data)
    return b"".join(kept), _written(path)


def _last_start(path: Path) -> bytes:
    """A long log's last starts, as far as they are found in time, and its end."""
    backlog = Backlog(path)
    try:
        return b"\n".join([*backlog.search(_SEARCH_SECONDS), *backlog.tail()])
    finally:
        backlog.close()


def _folders(folder: Path) -> list[Path]:
    return [path for path in _listed(folder) if path.is_dir()]


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _written(path: Path) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
