"""Hours of a node's life at twenty times its speed: what watches it does not grow. `make soak` takes 7 h of them."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from ranktop.demo.launcher import DemoNode
from support.command import RANKTOP

SPEED = 20.0
SOAK = bool(os.environ.get("RANKTOP_SOAK"))
WARM_SECONDS = 180.0 if SOAK else 8.0
WATCHED_SECONDS = 7 * 3600 / SPEED if SOAK else 12.0
MOST_BYTES_PER_HOUR = 1e6
"""Of the node's time; what short runs cannot tell from noise is allowed below."""
NOISE_BYTES = 8e6

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("demo")]


def _rss_bytes(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def test_the_exporter_and_its_recording_do_not_grow(tmp_path: Path) -> None:
    with DemoNode(speed=SPEED) as node:
        node.wait_ready(60.0)
        command = [str(RANKTOP), "exporter", "--pid", str(node.pid), "--listen", "127.0.0.1:0"]
        process = subprocess.Popen(
            [*command, "--interval", "0.2", "--record", str(tmp_path / "a.rtop")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            time.sleep(WARM_SECONDS)
            before = _rss_bytes(process.pid)
            time.sleep(WATCHED_SECONDS)
            after = _rss_bytes(process.pid)
        finally:
            process.terminate()
            _, said = process.communicate(timeout=20)
        assert process.returncode == 0, said
    hours = WATCHED_SECONDS * SPEED / 3600
    assert after - before < NOISE_BYTES + MOST_BYTES_PER_HOUR * hours
    assert (tmp_path / "a.rtop").stat().st_size > 0
