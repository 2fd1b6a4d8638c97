"""The disk under a server's `file` storage: free space, inodes, and whether it is a disk at all.

`mem_cache/hicache_storage.py` of SGLang 0.5.18: the directory is SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR, else
/tmp/hicache. One page stands in one file, so inodes can run out first.
"""

from __future__ import annotations

import os

from collectors.cmdline import option
from collectors.procfs import read_file
from ranktop.sample import NoData, Processes, ServerProcess, SourceError, StorageDisk

_VARIABLE = b"SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR="
_DEFAULT = "/tmp/hicache"
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
            path = storage_path(read_file(f"{folder}/environ", _MAX_BYTES))
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


def storage_path(environ: bytes) -> str:
    """The directory by a process's environment; the default where it is not absolute, as nobody knows its base."""
    value = next((one[len(_VARIABLE) :] for one in environ.split(b"\0") if one.startswith(_VARIABLE)), b"")
    return os.path.normpath(value.decode("utf-8", "replace")) if value.startswith(b"/") else _DEFAULT


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
