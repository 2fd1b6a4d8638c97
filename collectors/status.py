"""What ranktop reads of `/proc/PID/status` (proc(5)): memory, where the process may run, its pids in namespaces."""

from __future__ import annotations

from typing import NamedTuple

from collectors.procfs import kib_value, line_value


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


class StatusReader:
    """Parses one process's status again only where it says something else than before."""

    def __init__(self) -> None:
        self._said: bytes | None = None
        self._parsed = parse_status(b"")

    def read(self, raw: bytes) -> Status:
        """The status of this second."""
        # Of a process that runs, its state and its context switches move all the time, and stat tells the state.
        end = raw.rfind(b"\nvoluntary_ctxt_switches:")
        said = raw[max(0, raw.find(b"\nTgid:")) : end if end >= 0 else len(raw)]
        if said != self._said:
            self._said, self._parsed = said, parse_status(raw)
        return self._parsed


def parse_status(raw: bytes) -> Status:
    """The lines of `/proc/PID/status`; nothing is seen in an empty one."""
    return Status(
        kib_value(raw, b"RssAnon:"),
        kib_value(raw, b"RssFile:"),
        kib_value(raw, b"RssShmem:"),
        kib_value(raw, b"HugetlbPages:"),
        kib_value(raw, b"VmSize:"),
        kib_value(raw, b"VmHWM:"),
        kib_value(raw, b"VmPin:"),
        kib_value(raw, b"VmLck:"),
        _text(line_value(raw, b"Cpus_allowed_list:")),
        _text(line_value(raw, b"Mems_allowed_list:")),
        tuple(int(pid) for pid in (line_value(raw, b"NSpid:") or b"").split()),
    )


def _text(value: bytes | None) -> str | None:
    return value.decode("ascii", "replace") if value is not None else None
