"""The kernel's log while it is written (`/dev/kmsg`), from the journal, or from a text that somebody sent."""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from collectors.kernel_messages import KernelMessages
from ranktop.sample import Event, NoData, Processes, SourceError

_MOST_RECORDS = 20_000
_RECORD_BYTES = 8192
_PIDS_REMEMBERED = 4096
_JOURNAL_BYTES = 64 << 20
JOURNAL_SECONDS = 20.0

_BOOT_STAMP = re.compile(r"^\s*(?:<\d+>)?\[\s*(\d{1,10}\.\d{1,9})\]\s*")
_DMESG_STAMP = re.compile(r"^\s*\[(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})\]\s*")
_ISO_STAMP = re.compile(r"^\s*(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)\s+")
_SYSLOG_STAMP = re.compile(r"^\s*(\w{3}\s+\d{1,2} \d\d:\d\d:\d\d)\s+")


class KernelLogCollector:
    """OOM kills, XIDs, failed pins, hung tasks. The first reading also tells those of the last `history_seconds`."""

    name = "kernellog"
    part = "events"
    server = None
    period_seconds = 1.0

    def __init__(
        self,
        kmsg_path: str | os.PathLike[str] = "/dev/kmsg",
        *,
        history_seconds: float = 900.0,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = os.fspath(kmsg_path)
        self._not_before = wall() - history_seconds
        self._wall = wall
        self._monotonic = monotonic
        self._messages = KernelMessages()
        self._fd = -1
        self._ranks: dict[int, tuple[str, str]] = {}

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def read(self, processes: Processes | None, now: float) -> tuple[Event, ...]:
        """Events since the last look; one that names the pid of a rank, also of a dead one, carries that rank."""
        if self._fd < 0:
            self._fd = self._opened()
        self._remember_ranks(processes)
        boot = self._wall() - self._monotonic()
        found: list[Event] = []
        for record in self._records():
            event = self._event(record, boot)
            if event is not None and event.at_unix_seconds >= self._not_before:
                found.append(with_rank(event, self._ranks))
        return tuple(found)

    def _opened(self) -> int:
        try:
            return os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise NoData(f"{self._path} is not here (a container without it)", "absent") from None
        except OSError as error:
            raise SourceError(
                f"{self._path}: {error.strerror} (run as root, give CAP_SYSLOG, or set kernel.dmesg_restrict=0)",
                "no_permission",
            ) from error

    def _records(self) -> Iterator[bytes]:
        """Records that are there now, one a read(2); some were overwritten when EPIPE says so, and reading goes on."""
        for _ in range(_MOST_RECORDS):
            try:
                record = os.read(self._fd, _RECORD_BYTES)
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue
            except OSError as error:
                raise SourceError(f"{self._path}: {error.strerror} (needs CAP_SYSLOG)", "no_permission") from error
            if not record:
                return
            yield record

    def _event(self, record: bytes, boot_unix_seconds: float) -> Event | None:
        parsed = parse_kmsg(record)
        return self._messages.event(parsed[1], boot_unix_seconds + parsed[0]) if parsed is not None else None

    def _remember_ranks(self, processes: Processes | None) -> None:
        for rank in processes.ranks if processes is not None else ():
            self._ranks[rank.pid] = (rank.server, str(rank.tag))
        while len(self._ranks) > _PIDS_REMEMBERED:
            del self._ranks[next(iter(self._ranks))]


def with_rank(event: Event, ranks: dict[int, tuple[str, str]]) -> Event:
    """The event with server and rank of the pid that it names."""
    known = ranks.get(event.fields.get("pid", -1))
    return msgspec.structs.replace(event, server=known[0], rank=known[1]) if known is not None else event


def parse_kmsg(record: bytes) -> tuple[float, str] | None:
    """Seconds since boot and text of one record `priority,sequence,microseconds,flags;text` (Documentation/ABI)."""
    head, separator, rest = record.partition(b";")
    fields = head.split(b",")
    if not separator or len(fields) < 3 or not fields[2].isdigit() or len(fields[2]) > 18:
        return None
    return int(fields[2]) / 1e6, rest.split(b"\n", 1)[0].decode("utf-8", "replace")


def journal_events(*, boot: int = 0, since: str | None = None, command: str = "journalctl") -> list[Event]:
    """Events of the kernel's journal of this boot (0) or an earlier one (-1). Raises NoData or SourceError."""
    arguments = [command, "--dmesg", "--output=json", "--no-pager", f"--boot={boot}"]
    arguments += [f"--since={since}"] if since else []
    try:
        done = subprocess.run(arguments, capture_output=True, timeout=JOURNAL_SECONDS, check=False)
    except FileNotFoundError:
        raise NoData(f"{command} is not installed", "absent") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceError(f"{command}: {error} (try a shorter time with --since)", "timeout") from error
    if done.returncode != 0 and not done.stdout:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = said[-1] if said else f"exit status {done.returncode}"
        # Whether it may be read is not the question where a boot was not kept.
        hint = "" if "boot" in reason.lower() else " (needs root or the group systemd-journal)"
        raise NoData(f"{command} --boot={boot}: {reason}{hint}", "absent")
    return parse_journal(done.stdout[:_JOURNAL_BYTES].splitlines())


def parse_journal(lines: Iterable[bytes]) -> list[Event]:
    """Events in `journalctl -k -o json`. A message that is no UTF-8 is told as a list of bytes."""
    messages = KernelMessages()
    found: list[Event] = []
    for line in lines:
        try:
            entry = json.loads(line)
            at = int(entry["__REALTIME_TIMESTAMP"]) / 1e6
            message = entry["MESSAGE"]
            text = bytes(message).decode("utf-8", "replace") if isinstance(message, list) else str(message)
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
        event = messages.event(text, at)
        if event is not None:
            found.append(event)
    return found


def parse_text(text: str, *, at_unix_seconds: float, boot_unix_seconds: float | None = None) -> list[Event]:
    """Events in `dmesg`, `dmesg -T` or syslog text.

    Stamps since boot need `boot_unix_seconds`; a line without a time that can be read carries the one before it, and
    at first `at_unix_seconds`. `dmesg -T` and syslog print the local time of their machine without its zone: it is read
    in the zone of this one, as a server's log is. A syslog stamp has no year either: it is read as in the past.
    """
    messages = KernelMessages()
    found: list[Event] = []
    at, last = at_unix_seconds, at_unix_seconds
    for line in text.splitlines():
        stamp = _time_of(line, last, boot_unix_seconds)
        at = stamp if stamp is not None else at
        event = messages.event(_unstamped(line), at)
        if event is not None:
            found.append(event)
    return found


def _unstamped(line: str) -> str:
    """The message alone: its time is told beside it."""
    stamps = (stamp.match(line) for stamp in (_BOOT_STAMP, _ISO_STAMP, _DMESG_STAMP))
    return line[next((match.end() for match in stamps if match is not None), 0) :]


def _time_of(line: str, last_unix_seconds: float, boot_unix_seconds: float | None) -> float | None:
    if match := _BOOT_STAMP.match(line):
        return boot_unix_seconds + float(match[1]) if boot_unix_seconds is not None else None
    try:
        # A moment without a zone is one of this machine's.
        if match := _ISO_STAMP.match(line):
            return datetime.datetime.fromisoformat(match[1].replace(",", ".")).timestamp()
        if match := _DMESG_STAMP.match(line):
            return datetime.datetime.strptime(match[1], "%a %b %d %H:%M:%S %Y").timestamp()
        if match := _SYSLOG_STAMP.match(line):
            year = datetime.datetime.fromtimestamp(last_unix_seconds).year
            moment = datetime.datetime.strptime(f"{year} {match[1]}", "%Y %b %d %H:%M:%S")
            is_past = moment.timestamp() <= last_unix_seconds
            return (moment if is_past else moment.replace(year=year - 1)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return None
