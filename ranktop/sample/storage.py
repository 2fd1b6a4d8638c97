"""Where a server's file storage (L3) lies on this node."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from ranktop.sample.fields import gauge, label


class StorageDisk(Struct, frozen=True, array_like=True):
    """The file system under the directory of the `file` backend, by statvfs(3) and `/proc/PID/mountinfo`."""

    server: Annotated[str, label("server", 15, "id of the server")]
    path: Annotated[str, label("path", 24, "the directory, as the server sees it")]
    file_system: Annotated[str | None, label("fs", 8, "type of the mount: xfs, ext4, nfs4, tmpfs, overlay")] = None
    total_bytes: Annotated[int | None, gauge("total", "bytes", 9, "size of the file system")] = None
    free_bytes: Annotated[int | None, gauge("free", "bytes", 9, "room for an ordinary user")] = None
    total_inodes: Annotated[int | None, gauge("inodes", "count", 10, "0 on a file system that has no such limit")] = (
        None
    )
    free_inodes: Annotated[int | None, gauge("ifree", "count", 10, "for an ordinary user")] = None
