"""The memory cgroup of every rank, v1 and v2: the rank's own, never the monitor's.

Files of v2: Documentation/admin-guide/cgroup-v2.rst of Linux; of v1: cgroup-v1/memory.rst.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec

from collectors.cgroup_paths import (
    Membership,
    Mount,
    container_id,
    parse_membership,
    parse_mounts,
    pod_names,
    pod_uid,
    usual_mounts,
    visible_chain,
)
from collectors.pressure import parse_pressure
from collectors.procfs import KeptFile, parse_counters, read_file
from ranktop.sample import Cgroup, NoData, Processes, RankProcess

_UNLIMITED_BYTES = 1 << 60
"""v1 writes 9223372036854771712 for no limit; nothing real is that large."""

_MEMBERSHIP_EVERY = 10
"""Processes hardly ever change their cgroup."""


class CgroupCollector:
    """Cgroups by pid of the rank; ranks in one cgroup share one reading. A pid is absent where none is visible."""

    name = "cgroup"
    part = "cgroups"
    server = None
    period_seconds = 1.0

    def __init__(
        self,
        proc_root: str | os.PathLike[str] = "/proc",
        sys_root: str | os.PathLike[str] = "/sys",
        *,
        pods_folder: str | os.PathLike[str] = "/var/log/pods",
    ) -> None:
        self._proc = os.fspath(proc_root)
        self._sys = os.fspath(sys_root)
        self._pods_folder = os.fspath(pods_folder)
        self._members: dict[tuple[int, int], Membership | None] = {}
        self._groups: dict[Membership, _Group | None] = {}
        self._mounts: list[Mount] | None = None
        self._reads = 0

    def read(self, processes: Processes | None, now: float) -> dict[int, Cgroup]:
        ranks = processes.ranks if processes is not None else ()
        if self._reads % _MEMBERSHIP_EVERY == 0:
            self._members.clear()
        self._reads += 1
        members = {rank.pid: self._membership(rank) for rank in ranks}
        wanted = {member for member in members.values() if member is not None}
        self._groups = {member: group for member, group in self._groups.items() if member in wanted}
        read = {member: self._read(member) for member in wanted}
        found = {pid: cgroup for pid, member in members.items() if member and (cgroup := read[member]) is not None}
        if members and not found:
            raise NoData(f"no memory cgroup of the ranks is visible under {self._sys}/fs/cgroup", "absent")
        return found

    def _membership(self, rank: RankProcess) -> Membership | None:
        key = (rank.pid, rank.start_ticks)
        if key not in self._members:
            try:
                self._members[key] = parse_membership(read_file(f"{self._proc}/{rank.pid}/cgroup", 1 << 16))
            except OSError:
                return None
        return self._members[key]

    def _read(self, member: Membership) -> Cgroup | None:
        if member not in self._groups:
            chain = visible_chain(member, self._mounted(), self._sys)
            self._groups[member] = _Group(member, chain, self._pods_folder) if chain else None
        group = self._groups[member]
        return group.read() if group is not None else None

    def _mounted(self) -> list[Mount]:
        if self._mounts is None:
            try:
                self._mounts = parse_mounts(read_file(f"{self._proc}/self/mountinfo"))
            except OSError:
                self._mounts = usual_mounts()
        return self._mounts


class _Group:
    """The open files of one cgroup and the limits of its visible ancestors."""

    def __init__(self, member: Membership, chain: list[tuple[str, str]], pods_folder: str) -> None:
        self._member = member
        self._chain = chain
        self._files: dict[str, KeptFile | None] = {}
        self._pod_uid = pod_uid(member.path)
        self._container_id = container_id(member.path)
        self._names = pod_names(self._pod_uid, pods_folder) if self._pod_uid else None

    def read(self) -> Cgroup:
        own = self._chain[0][0]
        parse = parse_v2 if self._member.version == 2 else parse_v1
        limit_file = "memory.max" if self._member.version == 2 else "memory.limit_in_bytes"
        limits = [(path, limit_bytes(self._text(f"{folder}/{limit_file}"))) for folder, path in self._chain]
        files = {name: self._text(f"{own}/{name}") for name in (V2_FILES if self._member.version == 2 else V1_FILES)}
        return msgspec.structs.replace(
            parse(self._member.path, files, smallest(limits)),
            pod_uid=self._pod_uid,
            container_id=self._container_id,
            pod_namespace=self._names[0] if self._names else None,
            pod_name=self._names[1] if self._names else None,
        )

    def _text(self, path: str) -> bytes:
        """The file, or nothing: the root cgroup lacks most, old kernels some, and the cgroup may just have gone."""
        try:
            if path not in self._files:
                self._files[path] = KeptFile(path)
            file = self._files[path]
            return file.read() if file is not None else b""
        except OSError:
            self._files[path] = None
            return b""


V2_FILES = (
    "memory.current",
    "memory.peak",
    "memory.stat",
    "memory.events",
    "memory.oom.group",
    "memory.pressure",
)
V1_FILES = (
    "memory.usage_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.stat",
    "memory.failcnt",
    "memory.oom_control",
)


def parse_v2(path: str, files: dict[str, bytes], limit: tuple[str, int] | None) -> Cgroup:
    """A cgroup of the unified hierarchy from the texts of its files."""
    stat, events = parse_counters(files["memory.stat"]), parse_counters(files["memory.events"])
    group = number(files["memory.oom.group"])
    return Cgroup(
        path=path,
        version=2,
        current_bytes=number(files["memory.current"]),
        limit_bytes=limit[1] if limit else None,
        limit_path=limit[0] if limit else None,
        peak_bytes=number(files["memory.peak"]),
        active_file_bytes=stat.get(b"active_file"),
        inactive_file_bytes=stat.get(b"inactive_file"),
        slab_reclaimable_bytes=stat.get(b"slab_reclaimable"),
        shmem_bytes=stat.get(b"shmem"),
        anon_bytes=stat.get(b"anon"),
        oom_count=events.get(b"oom"),
        oom_kill_count=events.get(b"oom_kill"),
        max_count=events.get(b"max"),
        high_count=events.get(b"high"),
        oom_group=bool(group) if group is not None else None,
        pressure=parse_pressure(files["memory.pressure"]),
    )


def parse_v1(path: str, files: dict[str, bytes], limit: tuple[str, int] | None) -> Cgroup:
    """A cgroup of the v1 memory controller. Its stat knows the smallest limit above it, visible or not."""
    stat = parse_counters(files["memory.stat"])
    above = stat.get(b"hierarchical_memory_limit", _UNLIMITED_BYTES)
    if above < _UNLIMITED_BYTES and (limit is None or above < limit[1]):
        limit = ("(an ancestor)", above)
    return Cgroup(
        path=path,
        version=1,
        current_bytes=number(files["memory.usage_in_bytes"]),
        limit_bytes=limit[1] if limit else None,
        limit_path=limit[0] if limit else None,
        peak_bytes=number(files["memory.max_usage_in_bytes"]),
        active_file_bytes=stat.get(b"total_active_file"),
        inactive_file_bytes=stat.get(b"total_inactive_file"),
        shmem_bytes=stat.get(b"total_shmem"),
        anon_bytes=stat.get(b"total_rss"),
        oom_kill_count=parse_counters(files["memory.oom_control"]).get(b"oom_kill"),
        max_count=number(files["memory.failcnt"]),
    )


def number(raw: bytes) -> int | None:
    """The one number of a file, None where the file is absent or says something else."""
    text = raw.strip()
    return int(text) if text.isdigit() else None


def limit_bytes(raw: bytes) -> int | None:
    """A limit in bytes, None for no limit (`max` in v2, a huge number in v1)."""
    limit = number(raw)
    return limit if limit is not None and limit < _UNLIMITED_BYTES else None


def smallest(limits: Iterable[tuple[str, int | None]]) -> tuple[str, int] | None:
    """The path and bytes of the smallest limit, the innermost of equals."""
    set_limits = [(path, limit) for path, limit in limits if limit is not None]
    return min(set_limits, key=lambda item: item[1], default=None)
