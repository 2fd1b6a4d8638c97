"""The disk under file storage: a real process with a real directory, and mount tables as text."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.l3disk import StorageDiskCollector, file_system, storage_path
from ranktop.sample import NoData, Processes, ServerProcess, SourceError

ARGV = ("python", "-m", "sglang.launch_server", "--hicache-storage-backend", "file")


def served(pid: int | None, *argv: str) -> Processes:
    return Processes((ServerProcess("a:1", pid, 1, argv or ARGV),))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[int]:
    """A process whose environment names the directory."""
    environment = os.environ | {"SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_the_file_system_of_the_directory(server: int, tmp_path: Path) -> None:
    disk = StorageDiskCollector("a:1").read(served(server), 0.0)
    there = os.statvfs(tmp_path)
    assert (disk.server, disk.path) == ("a:1", str(tmp_path))
    assert (disk.total_bytes, disk.total_inodes) == (there.f_blocks * there.f_frsize, there.f_files)
    assert disk.free_bytes is not None
    assert 0 <= disk.free_bytes <= (disk.total_bytes or 0)
    assert disk.file_system == file_system(Path("/proc/self/mountinfo").read_bytes(), str(tmp_path))


def test_room_is_what_a_server_without_privilege_may_take(server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that keeps blocks and inodes for root, which those of a test machine may not do."""
    told = os.statvfs_result((65536, 4096, 1000, 300, 200, 500, 50, 40, 0, 255))
    monkeypatch.setattr("collectors.l3disk.os.statvfs", lambda _: told)
    disk = StorageDiskCollector("a:1").read(served(server), 0.0)
    assert (disk.total_bytes, disk.free_bytes) == (1000 * 4096, 200 * 4096)
    assert (disk.total_inodes, disk.free_inodes) == (500, 40)


@pytest.mark.parametrize(
    "processes",
    [None, served(None), served(os.getpid(), "python", "--hicache-storage-backend", "mooncake"), served(1, "python")],
)
def test_no_file_storage_no_disk(processes: Processes | None) -> None:
    with pytest.raises(NoData):
        StorageDiskCollector("a:1").read(processes, 0.0)


def test_a_process_that_is_gone_is_an_error_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="file storage of pid 4242"):
        StorageDiskCollector("a:1", str(tmp_path)).read(served(4242), 0.0)


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        (b"A=1\0SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR=/mnt/kv/\0B=2", "/mnt/kv"),
        (b"A=1\0NOT_SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR=/mnt/kv", "/tmp/hicache"),
        (b"SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR=cache", "/tmp/hicache"),
        (b"", "/tmp/hicache"),
    ],
)
def test_where_the_directory_is(environ: bytes, path: str) -> None:
    assert storage_path(environ) == path


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("--hicache-storage-backend-extra-config", '{"file_storage_path": "/mnt/kv/"}'), "/mnt/kv"),
        (
            (
                "--file-storage-path=/mnt/other",
                '--hicache-storage-backend-extra-config={"file_storage_path": "/mnt/kv"}',
            ),
            "/mnt/kv",
        ),
        (("--file-storage-path", "/mnt/other"), "/mnt/other"),
        (("--file-storage-path", "other"), "/tmp/hicache"),
        (("--hicache-storage-backend-extra-config", '{"prefetch_threshold": 512}'), "/tmp/hicache"),
        (("--hicache-storage-backend-extra-config", "{broken"), "/tmp/hicache"),
        (("--hicache-storage-backend-extra-config", "[" * 100_000), "/tmp/hicache"),
    ],
)
def test_where_the_directory_is_by_the_command_line(arguments: tuple[str, ...], path: str) -> None:
    """From 0.5.22; the environment stands above it."""
    assert storage_path(b"A=1", (*ARGV, *arguments)) == path
    assert storage_path(b"SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR=/mnt/first", (*ARGV, *arguments)) == "/mnt/first"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"file_storage_path": "/mnt/kv"}'),
        ("a.toml", 'file_storage_path = "/mnt/kv"'),
        ("a.yaml", "file_storage_path: /mnt/kv"),
    ],
)
def test_where_the_directory_is_by_a_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    argv = (*ARGV, "--hicache-storage-backend-extra-config", f"@{tmp_path / name}")
    assert storage_path(b"", argv, f"/proc/{os.getpid()}") == "/mnt/kv"
    with pytest.raises(OSError, match="No such file"):
        storage_path(b"", (*argv[:-1], f"@{tmp_path}/none.json"), f"/proc/{os.getpid()}")


MOUNTS = rb"""21 1 0:20 / / rw,relatime shared:1 - overlay overlay rw
22 21 0:21 / /tmp rw - tmpfs tmpfs rw
23 21 8:1 / /mnt/kv\040cache rw - xfs /dev/nvme0n1 rw
24 21 0:30 / /mnt rw - ext4 /dev/sda rw
25 21 0:31 / /mnt rw - nfs4 filer:/x rw
a line that is none
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/tmp/hicache", "tmpfs"),
        ("/tmpfile", "overlay"),
        ("/mnt/kv cache/a", "xfs"),
        ("/mnt/other", "nfs4"),
        ("/mnt", "nfs4"),
    ],
)
def test_the_mount_that_a_path_lies_on(path: str, kind: str) -> None:
    assert file_system(MOUNTS, path) == kind
    assert file_system(b"", path) is None
