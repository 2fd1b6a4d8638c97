"""Where a server's log is: behind its stdout, of its pod, container or unit, and its rotated siblings."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from collectors.serverlog_find import find_log, older_files
from ranktop.sample import NoData
from tests.collectors.log_files import READY, append, process


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    append(path, READY)
    return path


UID = "8f1d0c3a-1111-2222-3333-444455556666"


CONTAINER = "ab" * 32


def test_a_log_behind_stdout(tmp_path: Path, log: Path) -> None:
    source = find_log(42, process(tmp_path, log), tmp_path)
    assert (source.kind, source.path) == ("file", log)


def test_a_log_of_a_pod(tmp_path: Path) -> None:
    folder = tmp_path / "var/log/pods" / f"ns_glm-0_{UID}" / "server"
    folder.mkdir(parents=True)
    (folder / "0.log").touch()
    os.utime(folder / "0.log", (1, 1))
    (folder / "1.log").touch()
    rotated = folder / "1.log.20261129-090000.gz"
    rotated.write_bytes(gzip.compress(b"x"))
    os.utime(rotated, (2, 2))
    cgroup = (
        f"0::/kubepods.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice/cri-containerd-{CONTAINER}.scope\n"
    )
    source = find_log(42, process(tmp_path, "pipe:[5]", cgroup), tmp_path)
    assert source.path == folder / "1.log"
    assert source.history == (rotated, folder / "0.log")


def test_a_log_of_a_docker_container(tmp_path: Path) -> None:
    path = tmp_path / "var/lib/docker/containers" / CONTAINER / f"{CONTAINER}-json.log"
    path.parent.mkdir(parents=True)
    path.touch()
    source = find_log(42, process(tmp_path, "pipe:[5]", f"0::/system.slice/docker-{CONTAINER}.scope\n"), tmp_path)
    assert source.path == path


def test_a_log_of_a_unit(tmp_path: Path) -> None:
    source = find_log(42, process(tmp_path, "socket:[5]", "0::/system.slice/sglang@0.service\n"), tmp_path)
    assert source.kind == "command"
    assert source.argv[0] == "journalctl"
    assert source.argv[-1] == "sglang@0.service"


@pytest.mark.parametrize(
    ("stdout", "cgroup"),
    [
        ("/dev/pts/3", "0::/user.slice/user-0.slice/user@0.service/app.slice\n"),
        ("pipe:[5]", "0::/\n"),
        ("/gone.log (deleted)", ""),
        (None, f"0::/kubepods/pod{UID}/{CONTAINER}\n"),
    ],
)
def test_no_log_to_be_found(tmp_path: Path, stdout: str | None, cgroup: str) -> None:
    with pytest.raises(NoData, match="--log FILE") as caught:
        find_log(42, process(tmp_path, stdout, cgroup), tmp_path)
    assert caught.value.code == "no_log"


def test_rotated_siblings(tmp_path: Path, log: Path) -> None:
    for age, name in enumerate(("server.log.1", "server.log.2.gz")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (100 - age, 100 - age))
    (tmp_path / "other.log.1").touch()
    assert [path.name for path in older_files(log)] == ["server.log.1", "server.log.2.gz"]
