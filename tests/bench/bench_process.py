"""Commands as processes: `ranktop plan` from start to end."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from support.samples import LAUNCH
from tests.bench.rows import Row, of_runs

RANKTOP = str(Path(sys.executable).with_name("ranktop"))


def rows() -> Iterator[Row]:
    """Design section 8: `ranktop plan` as a process, 0.15 s."""
    wall, cpu = zip(*(_timed([RANKTOP, "plan", "--", *LAUNCH.split()]) for _ in range(11)), strict=True)
    yield of_runs("ranktop plan, wall", list(wall[1:]), "s", 0.15)
    yield of_runs("ranktop plan, CPU", list(cpu[1:]), "s")
    bare = [_timed([sys.executable, "-c", ""])[0] for _ in range(6)]
    yield of_runs("an empty Python, wall", bare[1:], "s")


def _timed(command: list[str]) -> tuple[float, float]:
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment)
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
