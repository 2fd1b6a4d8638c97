"""Commands as processes: `ranktop plan` from start to end."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from support.samples import LAUNCH
from tests.bench.micro import bare_environment
from tests.bench.rows import Peer, Row, of_runs

RANKTOP = str(Path(sys.executable).with_name("ranktop"))


def rows() -> Iterator[Row]:
    """Design section 8: `ranktop plan` as a process, 0.15 s."""
    bare = of_runs("", [_timed([sys.executable, "-c", ""])[0] for _ in range(6)][1:], "s")
    wall, cpu = zip(*(_timed([RANKTOP, "plan", "--", *LAUNCH.split()]) for _ in range(11)), strict=True)
    yield of_runs("ranktop plan, wall", wall[1:], "s", 0.15).beside(Peer("an empty Python", bare.value))
    yield of_runs("ranktop plan, CPU", cpu[1:], "s")


def _timed(command: list[str]) -> tuple[float, float]:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=bare_environment())
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
