"""Figures of functions inside Python, measured by pyperf: every case in several fresh processes, as one process keeps
its luck (hash seed, memory layout) for all of its runs.

A part is a module `bench_PART` with `cases(*arguments)`; `measured` runs it as `python -m tests.bench.micro PART`.
"""

from __future__ import annotations

import gc
import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pyperf

from tests.bench.rows import Row, of_runs

_OPTIONS = ("--warmups=1", "--loops=1", "--quiet", "--copy-env")
"""`loops` is 1 as every case knows how many calls make a run."""

_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6}

Work = Callable[[], object]


class Case(NamedTuple):
    """`make` prepares in each process, unmeasured, and gives what is measured: the mean of `times` calls is a run.

    `timer` is the CPU time of the process unless said otherwise: a shared machine disturbs it least.
    """

    name: str
    make: Callable[[], Work]
    unit: str = "ms"
    limit: float | None = None
    times: int = 20
    timer: Callable[[], float] = time.process_time


def measured(
    part: str, *arguments: str, environment: Mapping[str, str] | None = None, processes: int = 2, runs: int = 3
) -> Iterator[Row]:
    """A row of every case of the part, of so many runs in each process. `arguments` must not begin with a dash."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures.json"
        options = [f"--processes={processes}", f"--values={runs}", *_OPTIONS, f"--output={path}"]
        command = [sys.executable, "-m", "tests.bench.micro", part, *arguments, *options]
        subprocess.run(command, check=True, env=bare_environment() | (environment or {}), stdout=subprocess.DEVNULL)
        found = {bench.get_name(): bench.get_values() for bench in pyperf.BenchmarkSuite.load(str(path))}
    for case in _cases(part, arguments):
        yield of_runs(case.name, [value * _PER_SECOND[case.unit] for value in found[case.name]], case.unit, case.limit)


def bare_environment() -> dict[str, str]:
    """Ours, with compiled modules: without them a start takes twice as long."""
    return {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _cases(part: str, arguments: tuple[str, ...]) -> list[Case]:
    return list(importlib.import_module(f"tests.bench.bench_{part}").cases(*arguments))


def _timed(case: Case) -> Callable[[int], float]:
    ready: list[Work] = []

    def run(loops: int) -> float:
        if not ready:
            ready.append(case.make())
        work, timer = ready[0], case.timer
        # What was prepared is nobody's garbage to look through while the work runs.
        gc.collect()
        gc.freeze()
        started = timer()
        for _ in range(loops * case.times):
            work()
        return (timer() - started) / case.times

    return run


def main(part: str, rest: list[str]) -> None:
    """Both sides of pyperf: the process that starts workers, and a worker, which runs one of the cases."""
    split = next((place for place, text in enumerate(rest) if text.startswith("-")), len(rest))
    arguments = tuple(rest[:split])
    sys.argv = [sys.argv[0], *rest[split:]]
    runner = pyperf.Runner(program_args=("-m", "tests.bench.micro", part, *arguments))
    for case in _cases(part, arguments):
        runner.bench_time_func(case.name, _timed(case))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    main(sys.argv[1], sys.argv[2:])
