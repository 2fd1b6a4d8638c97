"""What ranktop reads of `/proc/PID/status` (proc(5)): memory, where the process may run, its pids in namespaces."""

from __future__ import annotations

import re
from typing import NamedTuple

from collectors.procfs import line_value


class Status(NamedTuple):
    """Sizes in bytes. None: the kernel does not tell it, as of a zombie."""

    rss_anon_bytes: int | None
    rss_file_bytes: int | None
    rss_shmem_bytes: int | None
    hugetlb_bytes: int | None
    vm_size_bytes: int | None
    vm_hwm_bytes: int | None
    vm_pin_bytes: int | None
    vm_locked_bytes: int | None
    cpus_allowed: str | None
    mems_allowed: str | None
    namespace_pids: tuple[int, ...]


_SIZE = re.compile(rb"^(RssAnon|RssFile|RssShmem|HugetlbPages|VmSize|VmHWM|VmPin|VmLck):\s+(\d+) kB$", re.MULTILINE)
_Sizes = tuple[int | None, int | None, int | None, int | None, int | None, int | None, int | None, int | None]
_Places = tuple[str | None, str | None, tuple[int, ...]]


class StatusReader:
    """Parses of one process's status only what says something else than before."""

    def __init__(self) -> None:
        self._sizes_said = self._places_said = b""
        self._sizes: _Sizes = parse_sizes(b"")
        self._places: _Places = parse_places(b"")
        self._parsed = Status(*self._sizes, *self._places)

    def read(self, raw: bytes) -> Status:
        """The status of this second."""
        sizes, places = _parts(raw)
        if sizes != self._sizes_said or places != self._places_said:
            if sizes != self._sizes_said:
                self._sizes_said, self._sizes = sizes, parse_sizes(sizes)
            if places != self._places_said:
                self._places_said, self._places = places, parse_places(places)
            self._parsed = Status(*self._sizes, *self._places)
        return self._parsed


def parse_status(raw: bytes) -> Status:
    """The lines of `/proc/PID/status`; nothing is seen in an empty one."""
    sizes, places = _parts(raw)
    return Status(*parse_sizes(sizes), *parse_places(places))


def parse_sizes(lines: bytes) -> _Sizes:
    """The sizes of `Status`, in its order, from lines like `VmSize:  123 kB`."""
    found = {name: int(kib) << 10 for name, kib in _SIZE.findall(lines)}
    size = found.get
    return (
        size(b"RssAnon"),
        size(b"RssFile"),
        size(b"RssShmem"),
        size(b"HugetlbPages"),
        size(b"VmSize"),
        size(b"VmHWM"),
        size(b"VmPin"),
        size(b"VmLck"),
    )


def parse_places(lines: bytes) -> _Places:
    """CPUs and memory nodes that are allowed, pids by namespace."""
    return (
        _text(line_value(lines, b"Cpus_allowed_list:")),
        _text(line_value(lines, b"Mems_allowed_list:")),
        tuple([int(pid) for pid in (line_value(lines, b"NSpid:") or b"").split()]),
    )


def _parts(raw: bytes) -> tuple[bytes, bytes]:
    """The sizes, which the kernel tells in one stretch, and what else does not move all the time.

    State and context switches do in a process that runs, and stat tells the state.
    """
    end = raw.rfind(b" kB\n")
    begin = raw.rfind(b"\n", 0, raw.find(b" kB\n"))
    last = raw.rfind(b"\nvoluntary_ctxt_switches:")
    first, last = max(0, raw.find(b"\nTgid:")), last if last >= 0 else len(raw)
    if end < 0:
        return b"", raw[first:last]
    return raw[begin + 1 : end + 3], raw[first:begin] + raw[end + 3 : last]


def _text(value: bytes | None) -> str | None:
    return value.decode("ascii", "replace") if value is not None else None
