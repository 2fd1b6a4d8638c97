"""What every rank maps that could be a host pool, from `/proc/PID/maps`: a list of mappings, no walk over pages.

Reading maps costs microseconds whatever the size of the pools, and is done only when the rank's sizes changed.
How SGLang's allocators look there: `mem_cache/memory_pool_host.py` of SGLang 0.5.18 and 0.5.23, seen on Linux 6.18.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import msgspec

from collectors import procfs
from ranktop.sample import Mapping, MappingKind, Processes, RankProcess, SourceError

MIN_SHARED_BYTES = 64 << 10
MIN_PRIVATE_BYTES = 16 << 20
"""Larger than a thread's stack (8 MiB), which looks the same."""

_HUGE_PAGE_BYTES = 2 << 20
_MAPS_LIMIT_BYTES = 32 << 20
_PATIENCE_SECONDS = 5.0
"""VmSize alone changes with every arena and stack of a busy rank."""


class _Sizes(NamedTuple):
    shmem: int | None
    hugetlb: int | None
    virtual: int | None


class _Seen(NamedTuple):
    """A rank's mappings, as read at `at` when it had these sizes."""

    sizes: _Sizes
    at: float
    mappings: tuple[Mapping, ...]


class PoolsCollector:
    """Mappings by pid. A pid is absent while its maps may not be read."""

    name = "pools"
    part = "mappings"
    server = None
    period_seconds = 1.0

    def __init__(self, proc_root: str | os.PathLike[str] = "/proc") -> None:
        self._root = os.fspath(proc_root)
        self._seen: dict[tuple[int, int], _Seen] = {}
        self.latest: dict[int, tuple[Mapping, ...]] = {}
        """What the last reading returned, for the collector that samples these mappings."""
        self.maps_reads = 0
        """How often a maps file was read, for tests and for the Sources screen."""

    def read(self, processes: Processes | None, now: float) -> dict[int, tuple[Mapping, ...]]:
        ranks = processes.ranks if processes is not None else ()
        alive = {(rank.pid, rank.start_ticks) for rank in ranks}
        self._seen = {key: seen for key, seen in self._seen.items() if key in alive}
        refused: list[int] = []
        for rank in ranks:
            try:
                self._refresh(rank, now)
            except PermissionError:
                refused.append(rank.pid)
            except OSError:
                # It died between the two reads; the next look at the processes will say so.
                continue
        if refused and not self._seen:
            raise SourceError(
                f"/proc/PID/maps of {len(refused)} ranks: permission denied (run as their user or as root)",
                "no_permission",
            )
        found = {key[0]: self._same(key[0], seen.mappings) for key, seen in self._seen.items()}
        if found != self.latest:
            self.latest = found
        return self.latest

    def _same(self, pid: int, mappings: tuple[Mapping, ...]) -> tuple[Mapping, ...]:
        """The object handed out before where nothing changed: who has judged or recorded it need not do so again."""
        before = self.latest.get(pid)
        return before if before is not None and before == mappings else mappings

    def _refresh(self, rank: RankProcess, now: float) -> None:
        key = (rank.pid, rank.start_ticks)
        sizes = _Sizes(rank.rss_shmem_bytes, rank.hugetlb_bytes, rank.vm_size_bytes)
        seen = self._seen.get(key)
        if seen is not None:
            only_virtual = sizes[:2] == seen.sizes[:2]
            if sizes == seen.sizes or (only_virtual and 0 <= now - seen.at < _PATIENCE_SECONDS):
                # The memory that all ranks have, and that never stands still, tells of private pools alone.
                if any(mapping.kind == "private_thp" for mapping in seen.mappings):
                    self._seen[key] = seen._replace(mappings=with_residency(seen.mappings, rank))
                return
        if rank.state == "Z":
            raise ProcessLookupError(rank.pid)
        raw = procfs.read_file(f"{self._root}/{rank.pid}/maps", _MAPS_LIMIT_BYTES)
        self.maps_reads += 1
        # It has given its memory back and is about to go. What was read while it did so may end in the middle.
        if not raw or (rank.vm_size_bytes is not None and not self._has_memory(rank.pid)):
            raise ProcessLookupError(rank.pid)
        mappings = tuple(self._with_page_size(mapping) for mapping in parse_maps(raw, rank.pid))
        self._seen[key] = _Seen(sizes, now, with_residency(mappings, rank))

    def _has_memory(self, pid: int) -> bool:
        return procfs.kib_value(procfs.read_file(f"{self._root}/{pid}/status"), b"VmSize:") is not None

    def _with_page_size(self, mapping: Mapping) -> Mapping:
        """The file system behind a hugetlb mapping tells its page size; following the link needs CAP_SYS_ADMIN."""
        if mapping.kind != "hugetlb":
            return mapping
        end = mapping.start_address + mapping.size_bytes
        try:
            size = os.statvfs(f"{self._root}/{mapping.pid}/map_files/{mapping.start_address:x}-{end:x}").f_bsize
        except OSError:
            return mapping
        return msgspec.structs.replace(mapping, page_size_bytes=size)


def parse_maps(raw: bytes, pid: int) -> list[Mapping]:
    """The lines of `/proc/PID/maps` that can hold a host pool, in the order of their addresses (proc_pid_maps(5))."""
    found: list[Mapping] = []
    for line in raw.split(b"\n"):
        if b" rw-" not in line:
            continue
        fields = line.split(None, 5)
        if len(fields) < 5:
            continue
        kind = _kind(fields[1], fields[5] if len(fields) > 5 else b"")
        start, _, end = fields[0].partition(b"-")
        if kind is None:
            continue
        try:
            address = int(start, 16)
            size = int(end, 16) - address
            inode = int(fields[4])
        except ValueError:
            continue
        if size < (MIN_PRIVATE_BYTES if kind == "private_thp" else MIN_SHARED_BYTES):
            continue
        found.append(
            Mapping(
                pid=pid,
                start_address=address,
                size_bytes=size,
                kind=kind,
                page_size_bytes=_HUGE_PAGE_BYTES if kind == "hugetlb" else os.sysconf("SC_PAGE_SIZE"),
                inode=inode or None,
                device=fields[3].decode("ascii", "replace") if inode else None,
            )
        )
    return found


def _kind(permissions: bytes, name: bytes) -> MappingKind | None:
    if permissions == b"rw-p":
        return None if name else "private_thp"
    if permissions != b"rw-s":
        return None
    if name == b"/dev/zero (deleted)":
        return "shared_anon"
    if name == b"/anon_hugepage (deleted)":
        return "hugetlb"
    if b"sglang" in name and name.startswith((b"/memfd:", b"/dev/shm/")):
        return "memfd"
    return None


def with_residency(mappings: tuple[Mapping, ...], rank: RankProcess) -> tuple[Mapping, ...]:
    """Whether the mappings are populated, as far as the rank's own counters can tell.

    A child inherits shared mappings in its list without a page of them. The counters are sums over a kind: they prove
    all or nothing, and what lies between is None. The same object where it is known already.
    """
    held = {
        "hugetlb": rank.hugetlb_bytes,
        "private_thp": rank.rss_anon_bytes,
        "shared_anon": rank.rss_shmem_bytes,
        "memfd": rank.rss_shmem_bytes,
    }
    mapped: dict[str, int] = dict.fromkeys(held, 0)
    for mapping in mappings:
        mapped[mapping.kind] += mapping.size_bytes
    mapped["shared_anon"] = mapped["memfd"] = mapped["shared_anon"] + mapped["memfd"]
    told = [_is_resident(mapping, held[mapping.kind], mapped[mapping.kind]) for mapping in mappings]
    if all(mapping.resident is resident for mapping, resident in zip(mappings, told, strict=True)):
        return mappings
    return tuple(
        msgspec.structs.replace(mapping, resident=resident) for mapping, resident in zip(mappings, told, strict=True)
    )


def _is_resident(mapping: Mapping, held_bytes: int | None, mapped_bytes: int) -> bool | None:
    if held_bytes is None:
        return None
    if held_bytes >= mapped_bytes:
        return True
    return False if held_bytes < mapping.size_bytes // 10 else None
