"""Kernel messages around a death: the journal of this boot and the last, /dev/kmsg, or a file."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from collectors.kernellog import KernelLogCollector, journal_events, parse_journal, parse_text
from collectors.simulated import DemoStates
from ranktop.sample import Event, NoData, Processes, SourceError
from ranktop.why.evidence import KernelLog, Reading

MAX_FILE_BYTES = 64 << 20


def kernel_logs(
    since_unix_seconds: float, *, kmsg_path: str = "/dev/kmsg", command: str = "journalctl"
) -> tuple[list[KernelLog], list[Reading]]:
    """The journal of this boot and of the last one, and what the kernel itself still holds."""
    logs: list[KernelLog] = []
    readings: list[Reading] = []

    def note(source: str, found: Iterable[Event] | NoData | SourceError) -> None:
        if isinstance(found, Exception):
            readings.append(Reading(source, "absent" if isinstance(found, NoData) else "failed", str(found)))
            return
        events = tuple(event for event in found if event.at_unix_seconds >= since_unix_seconds)
        logs.append(KernelLog(source, events))
        readings.append(Reading(source, "read", _counted(events)))

    # `journalctl` takes @SECONDS; the last boot ended before it, so it is asked for all of what --since covers.
    since = f"@{int(since_unix_seconds)}"
    note("kernel journal of the last boot", _journal(-1, since, command))
    note("kernel journal of this boot", _journal(0, since, command))
    note(kmsg_path, _kmsg(kmsg_path, since_unix_seconds))
    return logs, readings


def simulated_logs(
    processes: Processes, states: DemoStates, since_unix_seconds: float
) -> tuple[list[KernelLog], list[Reading]]:
    """What stand-in nodes tell in place of the kernel: a kill of theirs is in no log of this machine."""
    logs: list[KernelLog] = []
    readings: list[Reading] = []
    for server in processes.servers:
        source = f"kernel log that the stand-in node {server.id} simulates"
        try:
            lines = states.read(server).kernel_lines
        except (NoData, SourceError) as problem:
            readings.append(Reading(source, "absent" if isinstance(problem, NoData) else "failed", str(problem)))
            continue
        told = parse_text("\n".join(lines), at_unix_seconds=since_unix_seconds)
        events = tuple(event for event in told if event.at_unix_seconds >= since_unix_seconds)
        logs.append(KernelLog(source, events))
        readings.append(Reading(source, "read", _counted(events)))
    return logs, readings


def kernel_file(path: Path) -> tuple[list[KernelLog], list[Reading]]:
    """A kernel log that somebody saved: dmesg, dmesg -T, syslog, or `journalctl -k -o json`."""
    try:
        data, written = read_end(path, MAX_FILE_BYTES)
    except OSError as error:
        return [], [Reading(str(path), "failed", f"cannot be read: {error.strerror}")]
    if data.lstrip().startswith(b"{"):
        events = parse_journal(data.splitlines())
    else:
        events = parse_text(data.decode("utf-8", "replace"), at_unix_seconds=written)
    return [KernelLog(str(path), tuple(events))], [Reading(str(path), "read", _counted(events))]


def read_end(path: Path, most_bytes: int) -> tuple[bytes, float]:
    """The last bytes of a regular file and when it was written. OSError for anything else."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        file.seek(max(0, status.st_size - most_bytes))
        return file.read(most_bytes), status.st_mtime


def _journal(boot: int, since: str, command: str) -> list[Event] | NoData | SourceError:
    try:
        return journal_events(boot=boot, since=since, command=command)
    except (NoData, SourceError) as problem:
        return problem


def _kmsg(path: str, since_unix_seconds: float) -> tuple[Event, ...] | NoData | SourceError:
    now = time.time()
    try:
        return KernelLogCollector(path, history_seconds=now - since_unix_seconds).read(None, now)
    except (NoData, SourceError) as problem:
        return problem


def _counted(events: Iterable[Event]) -> str:
    kinds = [event.kind for event in events]
    told = [f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)]
    return ", ".join(told) if told else "no kill and no fault in it"
