"""Which libraries a command costs: heavy ones are imported where they are used and nowhere else."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ranktop.cli.main import COMMANDS
from ranktop.demo.launcher import DemoNode
from support.http_answers import answering
from support.terminal import Terminal

NEVER = frozenset({"pandas", "numpy", "matplotlib", "dateparser"})
"""What prometheus-api-client and pyarrow know of, and no command needs."""

HEAVY = NEVER | {"requests", "urllib3", "prometheus_api_client", "prometheus_client", "pyarrow"}
"""In no command but those that ask a Prometheus, or write parquet."""

NOT_FOR_HELP = HEAVY | {"textual", "rich", "pynvml", "psutil", "asyncio"}

RUN = """
import sys
from ranktop.cli.main import run
code = run(sys.argv[2:])
open(sys.argv[1], "w").write("\\n".join(sys.modules))
sys.exit(code)
"""


def imported(told: Path) -> set[str]:
    names = set(told.read_text().split())
    assert "ranktop.cli.main" in names
    return names


def command(told: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-c", RUN, str(told), *arguments]


@pytest.fixture(scope="module")
def pid() -> Iterator[str]:
    with DemoNode("healthy") as node:
        node.wait_ready()
        yield str(node.pid)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_costs_no_library(name: str, tmp_path: Path) -> None:
    told = tmp_path / "told"
    arguments = [name, "--help"] if name else ["--help"]
    done = subprocess.run(command(told, *arguments), capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"Usage: ranktop {name}")
    assert imported(told) & NOT_FOR_HELP == set()


def test_the_check_itself_sees_an_import(tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = "import requests" + RUN
    subprocess.run([sys.executable, "-c", script, str(told), "--help"], capture_output=True, check=True)
    assert imported(told) & HEAVY >= {"requests", "urllib3"}


@pytest.mark.e2e
@pytest.mark.xdist_group("demo1")
class TestLive:
    """Long enough to have read every source once, the metrics page too."""

    def test_the_screen(self, pid: str, tmp_path: Path) -> None:
        told = tmp_path / "told"
        terminal = Terminal(command(told, "--self", "--pid", pid), 120, 40)
        try:
            assert terminal.read_until("page walks 0", 30) is not None
            terminal.read_for(4)
            for key in b"12345678":
                terminal.press(bytes([key]))
                terminal.read_for(0.3)
            terminal.press(b"q")
            assert terminal.wait(20) == 0
        except BaseException:
            terminal.kill()
            raise
        names = imported(told)
        assert "textual" in names
        assert "collectors.exposition" in names
        assert names & HEAVY == set()

    def test_check(self, pid: str, tmp_path: Path) -> None:
        told = tmp_path / "told"
        subprocess.run(command(told, "check", "--pid", pid, "--window", "6"), capture_output=True, timeout=60)
        names = imported(told)
        assert "collectors.exposition" in names
        assert names & (HEAVY | {"textual"}) == set()

    def test_record(self, pid: str, tmp_path: Path) -> None:
        told = tmp_path / "told"
        arguments = ("record", "--pid", pid, "-o", str(tmp_path / "node.rtop"), "--duration", "3s")
        subprocess.run(command(told, *arguments), capture_output=True, check=True, timeout=60)
        assert imported(told) & (HEAVY | {"textual"}) == set()

    def test_exporter(self, pid: str, tmp_path: Path) -> None:
        told = tmp_path / "told"
        arguments = ("exporter", "--pid", pid, "--listen", "127.0.0.1:0")
        with subprocess.Popen(command(told, *arguments), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("exporter: ")
            time.sleep(2)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        assert imported(told) & (HEAVY | {"textual"}) == set()


def test_the_fleet_has_a_client_and_no_tables(tmp_path: Path) -> None:
    told = tmp_path / "told"
    with answering(200, b'{"status": "success", "data": {"resultType": "vector", "result": []}}') as url:
        done = subprocess.run(command(told, "fleet", "--prometheus", url, "--once"), capture_output=True, timeout=60)
    assert done.returncode == 3, "no series there"
    names = imported(told)
    assert "prometheus_api_client" in names
    assert names & (NEVER | {"textual"}) == set()
