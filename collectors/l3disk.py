"""The disk under a server's `file` storage: free space, inodes, and whether it is a disk at all.

`mem_cache/hicache_storage.py` of SGLang 0.5.18: the directory is SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR, else
/tmp/hicache. From 0.5.22 `file_storage_path` of the backend's extra config and then --file-storage-path come between
them. One page stands in one file, so inodes can run out first.
"""

from __future__ import annotations

import os
import tomllib
from typing import Any

from collectors.cmdline import option
from collectors.procfs import read_file
from ranktop.sample import NoData, Processes, ServerProcess, SourceError, StorageDisk

_VARIABLE = b"SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR="
_DEFAULT = "/tmp/hicache"
_EXTRA_CONFIG = "--hicache-storage-backend-extra-config"
_MAX_BYTES = 4 << 20


class StorageDiskCollector:
    """Looks every 10 s, as a file system fills over minutes. A network file system may hang: a thread of its own."""

    name = "l3disk"
    part = "storage_disks"
    period_seconds = 10.0

    def __init__(self, server: str, proc_root: str = "/proc") -> None:
        self.server: str | None = server
        self._id = server
        self._proc_root = proc_root

    def read(self, processes: Processes | None, now: float) -> StorageDisk:
        """The file system under the directory. NoData where the server uses no `file` storage by its command line."""
        process = next((one for one in (processes.servers if processes else ()) if one.id == self._id), None)
        if process is None or process.pid is None:
            raise NoData("no process of this server on this node", "waiting")
        backend = option(process.argv, "--hicache-storage-backend")
        if backend != "file":
            raise NoData(f"--hicache-storage-backend is {backend or 'not given'}, only `file` has a disk of its own")
        return self._look(process, process.pid)

    def _look(self, process: ServerProcess, pid: int) -> StorageDisk:
        folder = f"{self._proc_root}/{pid}"
        try:
            path = storage_path(read_file(f"{folder}/environ", _MAX_BYTES), process.argv, folder)
            told = os.statvfs(f"{folder}/root{path}")
            mounts = read_file(f"{folder}/mountinfo", _MAX_BYTES)
        except OSError as problem:
            raise SourceError(
                f"file storage of pid {pid}: {problem.strerror} (run as the server's user or as root)", "unreadable"
            ) from None
        return StorageDisk(
            self._id,
            path,
            file_system(mounts, path),
            told.f_blocks * told.f_frsize,
            told.f_bavail * told.f_frsize,
            told.f_files,
            told.f_favail,
        )


def storage_path(environ: bytes, argv: tuple[str, ...] = (), folder: str = "/proc/self") -> str:
    """The directory by a process's environment and command line; `folder` is its own in /proc.

    The default where it is not absolute, as nobody knows its base. OSError: its configuration cannot be read.
    """
    value = next((one[len(_VARIABLE) :] for one in environ.split(b"\0") if one.startswith(_VARIABLE)), b"")
    path = value.decode("utf-8", "replace")
    if not path:
        configured = _extra_config(option(argv, _EXTRA_CONFIG) or "", folder).get("file_storage_path")
        path = str(configured or option(argv, "--file-storage-path") or "")
    return os.path.normpath(path) if path.startswith("/") else _DEFAULT


def _extra_config(text: str, folder: str) -> dict[str, Any]:
    """The backend's own configuration: JSON, or `@FILE` of JSON, TOML or YAML. Empty where it is none of these."""
    if not text:
        return {}
    # Few servers have one, and every start would wait for its parser.
    import yaml

    data = text
    if text.startswith("@"):
        base = f"{folder}/root" if text.startswith("@/") else f"{folder}/cwd/"
        data = read_file(base + text[1:], _MAX_BYTES).decode("utf-8", "replace")
    try:
        # YAML holds JSON too.
        found: Any = tomllib.loads(data) if text.endswith(".toml") else yaml.safe_load(data)
    except (tomllib.TOMLDecodeError, yaml.YAMLError, RecursionError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def file_system(mountinfo: bytes, path: str) -> str | None:
    """Type of the mount that the path lies on: the longest mount point above it (proc(5), `mountinfo`)."""
    best, found = -1, None
    for line in mountinfo.decode("utf-8", "replace").splitlines():
        fields, separator, rest = line.partition(" - ")
        parts = fields.split(" ")
        if not separator or len(parts) < 5:
            continue
        point = parts[4].replace("\\040", " ")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        # A later mount on the same point hides the earlier one.
        if inside and len(point) >= best:
            best, found = len(point), rest.split(" ")[0]
    return found
