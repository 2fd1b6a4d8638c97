"""The screen beside a headless demo: CPU, bytes, first paint, key, quit, memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from ranktop.demo.launcher import DemoNode
from tests.bench.rows import Row, of_runs
from tests.bench.terminal import Figures, measure

RANKTOP = str(Path(sys.executable).with_name("ranktop"))
RUNS = 5


def rows(runs: int = RUNS, seconds: float = 20.0) -> Iterator[Row]:
    """Design section 8, rows one to four."""
    with DemoNode("healthy") as node:
        node.wait_ready()
        command = [RANKTOP, "--pid", str(node.pid)]
        for columns, lines in ((120, 40), (80, 24)):
            found = [measure(command, "TP7", columns=columns, rows=lines, seconds=seconds) for _ in range(runs)]
            yield from _screen(f"{columns}x{lines}", found)


def _screen(size: str, found: list[Figures]) -> Iterator[Row]:
    yield of_runs(f"screen {size}: CPU", [each.cpu_per_second for each in found], "s/s", 0.045)
    yield of_runs(f"screen {size}: to the terminal", [each.bytes_per_second for each in found], "B/s", 2048)
    yield of_runs(f"screen {size}: first full paint", [each.first_paint_seconds for each in found], "s", 0.5)
    yield of_runs(f"screen {size}: CPU until settled", [each.start_cpu_seconds for each in found], "s")
    yield of_runs(f"screen {size}: key to paint", [each.key_milliseconds for each in found], "ms", 40)
    yield of_runs(f"screen {size}: quit", [each.quit_seconds for each in found], "s", 0.35)
    yield of_runs(f"screen {size}: memory", [each.rss_bytes / 2**20 for each in found], "MiB", 60)
