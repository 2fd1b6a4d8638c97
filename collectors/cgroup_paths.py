"""Where the memory cgroup of a process is, and what its path tells of pod and container (cgroups(7))."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

_POD = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})\b")
_CONTAINER = re.compile(r"(?:^|[-/:])([0-9a-f]{64})(?:\.scope)?(?=/|$)")


class Membership(NamedTuple):
    """The cgroup that accounts a process's memory: version of the hierarchy and path inside it."""

    version: int
    path: str


class Mount(NamedTuple):
    """A mounted hierarchy. `root` is the cgroup that the mount point shows: not `/` in some containers."""

    version: int
    root: str
    folder: str


def parse_membership(raw: bytes) -> Membership | None:
    """`/proc/PID/cgroup`. On a hybrid machine the line that names `memory` decides, not which mounts there are."""
    unified: str | None = None
    for line in raw.decode("utf-8", "replace").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            return Membership(1, path)
        if number == "0" and not controllers:
            unified = path
    return Membership(2, unified) if unified is not None else None


def parse_mounts(mountinfo: bytes) -> list[Mount]:
    """The memory hierarchies of `/proc/self/mountinfo` (proc_pid_mountinfo(5))."""
    found: list[Mount] = []
    for line in mountinfo.decode("utf-8", "replace").splitlines():
        before, _, after = line.partition(" - ")
        fields, options = before.split(), after.split()
        if len(fields) < 5 or len(options) < 3:
            continue
        if options[0] == "cgroup2":
            found.append(Mount(2, fields[3], fields[4]))
        elif options[0] == "cgroup" and "memory" in options[2].split(","):
            found.append(Mount(1, fields[3], fields[4]))
    return found


def usual_mounts() -> list[Mount]:
    """Where systemd and container runtimes mount the hierarchies, for a tree without mountinfo."""
    return [
        Mount(1, "/", "/sys/fs/cgroup/memory"),
        Mount(2, "/", "/sys/fs/cgroup"),
        Mount(2, "/", "/sys/fs/cgroup/unified"),
    ]


def visible_chain(membership: Membership, mounts: list[Mount], sys_root: str) -> list[tuple[str, str]]:
    """Folder and path of the cgroup and its visible ancestors, innermost first; empty when none is visible.

    Inside a cgroup namespace a path can lead out of what is mounted (`/../x`).
    """
    for mount in mounts:
        if mount.version != membership.version:
            continue
        inside = _inside(membership.path, mount.root)
        base = sys_root + mount.folder.removeprefix("/sys") if mount.folder.startswith("/sys") else mount.folder
        if inside is None or not os.path.isdir(base + inside):
            continue
        marker = "cgroup.procs" if membership.version == 2 else "memory.limit_in_bytes"
        if not os.path.exists(f"{base}{inside}/{marker}"):
            continue
        parts = [part for part in inside.split("/") if part]
        steps = ["".join(f"/{part}" for part in parts[:depth]) for depth in range(len(parts), -1, -1)]
        return [(base + step, (mount.root.rstrip("/") + step) or "/") for step in steps]
    return []


def _inside(path: str, root: str) -> str | None:
    """The path below a mount whose root is `root`. A container without a namespace of its own sees the host's path."""
    if "/.." in path:
        return None
    if root in ("/", ""):
        return path.rstrip("/")
    if path == root or path.startswith(root + "/"):
        return path[len(root) :].rstrip("/")
    return None


def pod_uid(path: str) -> str | None:
    """The UID of the Kubernetes pod in a path; systemd's spelling has underscores for dashes."""
    match = _POD.search(path)
    return match[1].replace("_", "-") if match else None


def container_id(path: str) -> str | None:
    """The innermost container id (64 hex digits) in a path."""
    found = _CONTAINER.findall(path)
    return found[-1] if found else None


def pod_names(uid: str, pods_folder: str) -> tuple[str, str] | None:
    """Namespace and name of a pod from its folder of logs, `NAMESPACE_NAME_UID`, which the kubelet makes."""
    try:
        names = os.listdir(pods_folder)
    except OSError:
        return None
    for name in names:
        parts = name.split("_")
        if len(parts) == 3 and parts[2] == uid:
            return parts[0], parts[1]
    return None
