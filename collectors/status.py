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


_SIZES = (
    b"RssAnon:",
    b"RssFile:",
    b"RssShmem:",
    b"HugetlbPages:",
    b"VmSize:",
    b"VmHWM:",
    b"VmPin:",
    b"VmLck:",
)
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
    """The values of `_SIZES` in lines like `VmSize:  123 kB`."""
    words = lines.split()
    if len(words) % 3 or words[2::3].count(b"kB") != len(words) // 3:
        anon, file, shmem, huge, size, hwm, pin, locked = [kib_value(lines, key) for key in _SIZES]
    else:
        found = dict(zip(words[::3], words[1::3], strict=True))
        anon, file, shmem, huge, size, hwm, pin, locked = [_bytes(found.get(key)) for key in _SIZES]
    return anon, file, shmem, huge, size, hwm, pin, locked


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


def _bytes(kib: bytes | None) -> int | None:
    return int(kib) << 10 if kib is not None and kib.isdigit() else None


def _text(value: bytes | None) -> str | None:
    return value.decode("ascii", "replace") if value is not None else None
