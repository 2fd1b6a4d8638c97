"""However it ends, no process, no mapping and no file of a stand-in node is left. One rank is enough to show it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("demo1")]

# A background job inherits an ignored SIGINT (bash(1), "SIGNALS") and nohup an ignored SIGHUP; Python leaves both so.
LAUNCHER = """
import signal
import time
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from ranktop.demo.launcher import DemoNode
with DemoNode("cp1-fallback") as node:
    node.wait_ready(60)
    print(node.pid, flush=True)
    time.sleep(120)
"""


class Launched:
    """A launcher in a process of its own, with its temporary files in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER],
            env=os.environ | {"TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.node_pid = int(self.process.stdout.readline())
        main = psutil.Process(self.node_pid)
        self.processes = [main, *main.children(recursive=True)]

    def leftovers(self) -> list[str]:
        alive = [str(process) for process in self.processes if _lives(process)]
        return alive + [str(path) for path in self.folder.iterdir()]


def _lives(process: psutil.Process) -> bool:
    """A zombie holds nothing: it waits for whoever inherited it."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[Launched]:
    launched = Launched(tmp_path)
    assert len(launched.processes) == 3
    assert len(list(tmp_path.iterdir())) == 1
    yield launched
    launched.process.kill()
    launched.process.communicate()


def _nothing_left(launched: Launched, within_seconds: float = 5.0) -> None:
    deadline = time.monotonic() + within_seconds
    while launched.leftovers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert launched.leftovers() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_to_the_launcher_ends_all(launched: Launched, number: signal.Signals) -> None:
    launched.process.send_signal(number)
    launched.process.wait(10)
    _nothing_left(launched)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_main_process_ends_all(launched: Launched, number: signal.Signals) -> None:
    os.kill(launched.node_pid, number)
    _nothing_left(launched)


def test_a_killed_main_process_takes_its_ranks_along(launched: Launched) -> None:
    os.kill(launched.node_pid, signal.SIGKILL)
    for process in launched.processes[1:]:
        process.wait(5)
    launched.process.send_signal(signal.SIGTERM)
    launched.process.wait(10)


def test_the_last_process_removes_the_files_of_killed_parents(launched: Launched) -> None:
    launched.process.kill()
    os.kill(launched.node_pid, signal.SIGKILL)
    _nothing_left(launched)


def test_a_stopped_rank_does_not_keep_the_node_from_ending(launched: Launched) -> None:
    (rank,) = (process for process in launched.processes if process.cmdline()[0].startswith("sglang::scheduler"))
    rank.suspend()
    time.sleep(1.5)
    os.kill(launched.node_pid, signal.SIGTERM)
    _nothing_left(launched, within_seconds=10.0)
