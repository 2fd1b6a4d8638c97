"""What ranktop reads of `/proc/PID/status` (proc(5)): state, memory, where the process may run, its pids."""

from __future__ import annotations

import re
from typing import NamedTuple, cast

from collectors.procfs import line_value


class Status(NamedTuple):
    """Sizes in bytes, in the kernel's order. None: the kernel does not tell it, as of a zombie."""

    state: str
    """One letter: R, S, D, Z, T."""
    vm_size_bytes: int | None
    vm_locked_bytes: int | None
    vm_pin_bytes: int | None
    vm_hwm_bytes: int | None
    rss_anon_bytes: int | None
    rss_file_bytes: int | None
    rss_shmem_bytes: int | None
    hugetlb_bytes: int | None
    parent_pid: int | None
    cpus_allowed: str | None
    mems_allowed: str | None
    namespace_pids: tuple[int, ...]


_Sizes = tuple[int | None, int | None, int | None, int | None, int | None, int | None, int | None, int | None]
_Places = tuple[int | None, str | None, str | None, tuple[int, ...]]
_SIZES = (b"VmSize", b"VmLck", b"VmPin", b"VmHWM", b"RssAnon", b"RssFile", b"RssShmem", b"HugetlbPages")
_SIZE = re.compile(rb"^(" + b"|".join(_SIZES) + rb"):\s+(\d+) kB$", re.MULTILINE)
_USUAL = re.compile(
    rb"VmPeak:.*\nVmSize:\t *(\d+) kB\nVmLck:\t *(\d+) kB\nVmPin:\t *(\d+) kB\nVmHWM:\t *(\d+) kB\nVmRSS:.*\n"
    rb"RssAnon:\t *(\d+) kB\nRssFile:\t *(\d+) kB\nRssShmem:\t *(\d+) kB\n"
    rb"VmData:.*\nVmStk:.*\nVmExe:.*\nVmLib:.*\nVmPTE:.*\nVmSwap:.*\nHugetlbPages:\t *(\d+) kB\n"
)
"""As kernels since 4.5 tell them (fs/proc/task_mmu.c): in one step, half the time of finding each."""
_MOVING = b"\nvoluntary_ctxt_switches:"
"""From here to the end all of it moves in a process that does anything."""


class StatusReader:
    """Parses of one process's status only what says something else than before."""

    def __init__(self) -> None:
        self._said = self._rest_said = b""
        self._places: _Places = parse_places(b"")
        self._parsed = parse_status(b"")

    def read(self, raw: bytes) -> Status:
        """The status of this second, the same object while it says the same."""
        said = raw[: raw.rfind(_MOVING)]
        if said != self._said:
            self._said = said
            sizes, rest = _parts(said)
            if rest != self._rest_said:
                self._rest_said, self._places = rest, parse_places(rest)
            self._parsed = Status(_state(said), *sizes, *self._places)
        return self._parsed


def parse_status(raw: bytes) -> Status:
    """The lines of `/proc/PID/status`; nothing is seen in an empty one."""
    sizes, rest = _parts(raw)
    return Status(_state(raw), *sizes, *parse_places(rest))


def parse_places(lines: bytes) -> _Places:
    """Parent, CPUs and memory nodes that are allowed, pids by namespace."""
    parent = line_value(lines, b"PPid:")
    return (
        int(parent) if parent is not None and parent.isdigit() else None,
        _text(line_value(lines, b"Cpus_allowed_list:")),
        _text(line_value(lines, b"Mems_allowed_list:")),
        tuple([int(pid) for pid in (line_value(lines, b"NSpid:") or b"").split()]),
    )


def _state(raw: bytes) -> str:
    return raw.partition(b"\nState:\t")[2][:1].decode("ascii", "replace") or "?"


def _parts(said: bytes) -> tuple[_Sizes, bytes]:
    """The sizes of lines like `VmSize:  123 kB`, and what stands around them and seldom moves."""
    usual = _USUAL.search(said)
    if usual is not None:
        sizes = [int(kib) << 10 for kib in usual.groups()]
        return cast(_Sizes, sizes), said[said.find(b"\nTgid:") : usual.start()] + said[usual.end() :]
    found = {name: int(kib) << 10 for name, kib in _SIZE.findall(said)}
    return cast(_Sizes, [found.get(name) for name in _SIZES]), said


def _text(value: bytes | None) -> str | None:
    return value.decode("ascii", "replace") if value is not None else None
