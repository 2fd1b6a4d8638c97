"""A cgroup that is too small for mistakes, and disks of a few hundred kilobytes. Root's work; skips for others."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest

from faults.fault import Fault, Stage
from faults.unruly import PAGE, Unruly, endless, http
from ranktop.recording.reader import Recording
from support.command import RANKTOP

_LIMIT_BYTES = 256_000_000
_CGROUPS = Path("/sys/fs/cgroup")


@contextmanager
def _cgroup() -> Generator[Path]:
    """A memory cgroup of 256 MB, version 1 or 2, without swap to hide in."""
    v1 = _CGROUPS / "memory"
    folder = (v1 if v1.is_dir() else _CGROUPS) / f"ranktop-tests-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / ("memory.limit_in_bytes" if v1.is_dir() else "memory.max")).write_text(str(_LIMIT_BYTES))
    except OSError as problem:
        with suppress(OSError):
            folder.rmdir()
        pytest.skip(f"no memory cgroup can be made here: {problem}")
    try:
        yield folder
    finally:
        for _ in range(50):
            with suppress(OSError):
                folder.rmdir()
                break
            time.sleep(0.1)


def _killed(cgroup: Path) -> int:
    """How many processes of it the kernel has killed for memory."""
    name = "memory.oom_control" if (cgroup / "memory.oom_control").exists() else "memory.events"
    told = dict(line.split() for line in (cgroup / name).read_text().splitlines())
    return int(told.get("oom_kill", 0))


def _peak_bytes(cgroup: Path) -> int:
    for name in ("memory.max_usage_in_bytes", "memory.peak"):
        if (cgroup / name).exists():
            return int((cgroup / name).read_text())
    return 0


def _joins(cgroup: Path) -> Callable[[], None]:
    return lambda: (cgroup / "cgroup.procs").write_text(str(os.getpid())) and None


def _small_cgroup(stage: Stage, shows: str) -> None:
    """While everything that it reads is as large as it can be: a page of 100 MB, a log of 75 MB, a line of 20 MB."""
    log = stage.folder / "server.log"
    log.write_text("[2026-11-29 09:02:31 TP0] Try to allocate 64 tokens.\n")
    with _cgroup() as cgroup, Unruly(http(body=PAGE)) as server:
        command = [RANKTOP, "record", "-o", stage.folder / "a.rtop", "--url", server.url, "--log", log]
        recorder = subprocess.Popen(
            [*command, "--scrape-interval", "1", "--duration", "9"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_joins(cgroup),
        )
        time.sleep(3)
        server.answer = endless
        with log.open("ab") as file:
            file.write((b"[2026-11-29 09:02:31 TP0] " + b"noise " * 19 + b"\n") * 532_000)
            file.write(b"x" * (20 << 20) + b"\n")
        said, complained = recorder.communicate(timeout=60)
        assert (recorder.returncode, _killed(cgroup)) == (0, 0), complained
        assert 0 < _peak_bytes(cgroup) <= _LIMIT_BYTES
    assert shows in said
    with Recording(str(stage.folder / "a.rtop")) as recording:
        details = {state.detail for one in recording.samples() for state in one.sample.sources}
    assert any("not read further" in detail for detail in details), details


def _on_a_disk(stage: Stage, options: str, script: str) -> subprocess.CompletedProcess[str]:
    """Runs a shell script in a mount namespace in which $DISK is a file system of its own."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount")
    disk = stage.folder / "disk"
    disk.mkdir()
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o {options} none "$DISK" || exit 77\n{script}'],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"DISK": str(disk), "RANKTOP": str(RANKTOP), "PYTHON": sys.executable},
        check=False,
    )
    if done.returncode == 77:
        pytest.skip(f"nothing can be mounted here: {done.stderr}")
    return done


def _fills_up(stage: Stage, shows: str) -> None:
    """Another program takes the room, and gives it back."""
    done = _on_a_disk(
        stage,
        "size=600k",
        '"$RANKTOP" record -o "$DISK/a.rtop" --pid 1 --interval 0.2 --duration 12 & recorder=$!\n'
        'sleep 3; dd if=/dev/zero of="$DISK/ballast" bs=4k status=none 2>/dev/null\n'
        'sleep 5; rm "$DISK/ballast"\n'
        "wait $recorder || exit 1\n"
        f'cp "$DISK/a.rtop" "{stage.folder}"',
    )
    assert done.returncode == 0, done.stderr
    assert shows in done.stderr
    assert "Traceback" not in done.stderr
    with Recording(str(stage.folder / "a.rtop")) as recording:
        times = [one.sample.at_unix_seconds for one in recording.samples()]
    assert times[-1] - times[0] > 10, "it went on when there was room"
    assert max(after - before for before, after in pairwise(times)) < 2, "and nothing is missing"


def _read_only(stage: Stage, shows: str) -> None:
    done = _on_a_disk(stage, "ro", '"$RANKTOP" record -o "$DISK/a.rtop" --pid 1 --duration 1')
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert shows in done.stderr


FAULTS = (
    Fault("memory", "a cgroup of 256 MB, a page of 100 MB, a log of 95 MB", "samples", _small_cgroup),
    Fault("disk", "is full, then has room again", "disk", _fills_up),
    Fault("disk", "is mounted read-only", "Read-only file system", _read_only),
)
