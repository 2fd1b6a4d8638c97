"""Files whose reading walks a rank's pages, and so stalls it, are never opened: seen from inside and from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WALKS = ("smaps", "smaps_rollup", "numa_maps", "pagemap")


@pytest.fixture
def server_pid() -> Iterator[int]:
    node = {
        "title": "python -m sglang.launch_server --port 39901",
        "children": [{"title": f"sglang::scheduler_TP{rank}"} for rank in range(2)],
    }
    process = subprocess.Popen(
        [sys.executable, HERE / "process_tree.py", json.dumps(node)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    for _ in range(3):
        process.stdout.readline()
    yield process.pid
    process.kill()
    process.wait()
    process.stdout.close()


def watch(pid: int, *before: str | Path) -> str:
    done = subprocess.run(
        [*before, sys.executable, HERE / "watch_everything.py", str(pid)],
        env=os.environ | {"PYTHONPATH": str(HERE.parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def walks(paths: list[str]) -> list[str]:
    return [path for path in paths if path.rpartition("/")[2] in WALKS]


def test_seen_by_the_interpreter(server_pid: int) -> None:
    opened = watch(server_pid).splitlines()
    assert any(path.endswith("/maps") for path in opened)
    assert walks(opened) == []


@pytest.mark.tools("strace")
def test_seen_by_the_kernel(server_pid: int, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    watch(server_pid, "strace", "-f", "-qq", "-e", "trace=open,openat,openat2", "-o", trace)
    opened = [line.split('"')[1] for line in trace.read_text().splitlines() if '"' in line]
    assert any(path.endswith("/maps") for path in opened)
    assert walks(opened) == []


def test_the_check_itself_sees_a_walk() -> None:
    assert walks(["/proc/1/maps", "/proc/1/smaps_rollup", "/x/numa_maps"]) == ["/proc/1/smaps_rollup", "/x/numa_maps"]
