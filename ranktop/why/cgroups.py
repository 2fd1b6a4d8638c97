"""Cgroups that count kills, also those of pods whose containers are gone (cgroup-v2.rst, cgroup-v1/memory.rst)."""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct

from collectors.cgroup import limit_bytes, number, smallest
from collectors.cgroup_paths import pod_names, pod_uid
from collectors.procfs import parse_counters, read_file
from ranktop.sample import NoData
from ranktop.why.evidence import Remains

MAX_GROUPS = 20_000
MAX_DEPTH = 16


class _Files(Struct, frozen=True):
    """Names of the files of one version of the memory controller."""

    events: str
    local_events: str | None
    limit: str
    peak: str
    current: str
    group: str | None
    processes: str = "cgroup.procs"


_V2 = _Files("memory.events", "memory.events.local", "memory.max", "memory.peak", "memory.current", "memory.oom.group")
_V1 = _Files(
    "memory.oom_control",
    None,
    "memory.limit_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.usage_in_bytes",
    None,
)


def remains(sys_root: str = "/sys", pods_folder: str = "/var/log/pods") -> list[Remains]:
    """Every cgroup that has counted a kill of its own, outermost first. Raises NoData where none is visible.

    v2 counts are hierarchical: a cgroup is left out when those below it account for all of its kills.
    """
    root = f"{sys_root}/fs/cgroup"
    unified = os.path.exists(f"{root}/cgroup.controllers") or not os.path.isdir(f"{root}/memory")
    files, base = (_V2, root) if unified else (_V1, f"{root}/memory")
    if not os.path.isdir(base):
        raise NoData(f"{base} is not here")
    kills = {path: count for path in _walk(base) if (count := _kills(f"{base}{path}/{files.events}")) > 0}
    found: list[Remains] = []
    for path, count in kills.items():
        below = sum(other for inner, other in kills.items() if inner.rpartition("/")[0] == path)
        if not unified or count > below:
            found.append(_remains(base, path, count, files, pods_folder))
    return found


def _walk(base: str) -> Iterator[str]:
    """Paths below the mount point, parents before children."""
    pending = [""]
    for _ in range(MAX_GROUPS):
        if not pending:
            return
        path = pending.pop()
        yield path
        if path.count("/") >= MAX_DEPTH:
            continue
        try:
            with os.scandir(base + path) as entries:
                inner = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            continue
        pending += [f"{path}/{name}" for name in reversed(inner)]


def _remains(base: str, path: str, kills: int, files: _Files, pods_folder: str) -> Remains:
    folder = base + path
    parts = path.split("/")
    chain = ["/".join(parts[:depth]) for depth in range(len(parts), 0, -1)]
    limit = smallest((step or "/", limit_bytes(_read(f"{base}{step}/{files.limit}"))) for step in chain)
    group = number(_read(f"{folder}/{files.group}")) if files.group else None
    own = parse_counters(_read(f"{folder}/{files.local_events}")).get(b"oom") if files.local_events else None
    procs = _read(f"{folder}/{files.processes}")
    uid = pod_uid(path)
    names = pod_names(uid, pods_folder) if uid else None
    return Remains(
        path=path or "/",
        oom_kill_count=kills,
        own_oom_count=own,
        limit_bytes=limit[1] if limit else None,
        limit_path=limit[0] if limit else None,
        peak_bytes=number(_read(f"{folder}/{files.peak}")),
        current_bytes=number(_read(f"{folder}/{files.current}")),
        oom_group=bool(group) if group is not None else None,
        pod="/".join(names) if names else uid,
        has_processes=bool(procs.strip()),
    )


def _kills(path: str) -> int:
    return parse_counters(_read(path)).get(b"oom_kill", 0)


def _read(path: str) -> bytes:
    """The file, or nothing: the root lacks most of them, and a cgroup may go while it is read."""
    try:
        return read_file(path, 1 << 16)
    except OSError:
        return b""
