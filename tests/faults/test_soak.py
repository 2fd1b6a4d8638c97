"""Hours of a node's life at twenty times its speed: what watches it does not grow. `make soak` takes 7 h of them."""

from __future__ import annotations

import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import pytest

from support.command import RANKTOP
from support.http_answers import closed_port
from support.terminal import Terminal

SPEED = 20.0
SOAK = bool(os.environ.get("RANKTOP_SOAK"))
WARM_SECONDS = 960.0 if SOAK else 20.0
"""The screen keeps its last 900 seconds: in a soak that is full before growth is measured."""
WATCHED_SECONDS = 7 * 3600 / SPEED if SOAK else 40.0
MOST_BYTES_PER_HOUR = 1e6
"""Of the node's time."""
NOISE_BYTES = 8e6
"""What a minute, in which everything still fills, may take."""
KEYS = (b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9", b"1", b"\r", b"\x1b", b" ", b"\x1b[D", b" ", b"s")

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("soak")]


def _rss_bytes(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the line that lies nearest to the points, least squares."""
    x_mean = sum(x for x, _ in points) / len(points)
    y_mean = sum(y for _, y in points) / len(points)
    return sum((x - x_mean) * (y - y_mean) for x, y in points) / sum((x - x_mean) ** 2 for x, _ in points)


def test_a_slope() -> None:
    assert slope([(0, 5.0), (1, 7.0), (2, 9.0)]) == pytest.approx(2.0)
    assert slope([(0, 5.0), (1, 9.0), (2, 5.0)]) == pytest.approx(0.0)


class Watchers:
    """The screen of `ranktop demo`, used all the time, and an exporter that records and is scraped."""

    def __init__(self, folder: Path) -> None:
        self.recording = folder / "a.rtop"
        self.screen = Terminal([str(RANKTOP), "demo", "--speed", str(SPEED)], 120, 40)
        assert self.screen.read_until("TP7", 40) is not None
        (node,) = psutil.Process(self.screen.pid).children()
        self.address = closed_port().removeprefix("http://")
        command = [str(RANKTOP), "exporter", "--pid", str(node.pid), "--listen", self.address, "--interval", "0.2"]
        self.exporter = subprocess.Popen(
            [*command, "--record", str(self.recording)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self._turn = 0

    def use(self, seconds: float) -> None:
        """Another key, a scrape, and some time."""
        self.screen.press(KEYS[self._turn % len(KEYS)])
        self._turn += 1
        self.screen.read_for(seconds)
        self.screen.received.clear()
        urllib.request.urlopen(f"http://{self.address}/metrics", timeout=10).read()

    def rss_bytes(self) -> dict[str, int]:
        return {"screen": self.screen.rss_bytes(), "exporter": _rss_bytes(self.exporter.pid)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Both end by themselves, the node with the screen."""
        self.exporter.terminate()
        _, said = self.exporter.communicate(timeout=20)
        self.screen.press(b"\x1b")
        self.screen.read_for(0.5)
        self.screen.press(b"q")
        code = self.screen.wait(10)
        if code is None:
            self.screen.kill()
        assert (code, self.exporter.returncode) == (0, 0), said


def test_nothing_that_watches_grows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    points: dict[str, list[tuple[float, float]]] = {"screen": [], "exporter": []}
    with Watchers(tmp_path) as watchers:
        began = time.monotonic()
        while (passed := time.monotonic() - began) < WARM_SECONDS + WATCHED_SECONDS:
            watchers.use(2.0)
            if passed >= WARM_SECONDS:
                for name, size in watchers.rss_bytes().items():
                    points[name].append((passed * SPEED / 3600, size))
    with capsys.disabled():
        for name, seen in points.items():
            print(f"\n{name}: {seen[0][1] / 1e6:.1f} MB, then {slope(seen) / 1e6:+.2f} MB an hour of the node", end="")
    for seen in points.values():
        assert seen[-1][1] - seen[0][1] < NOISE_BYTES
        assert not SOAK or slope(seen) < MOST_BYTES_PER_HOUR
    assert watchers.recording.stat().st_size > 0
