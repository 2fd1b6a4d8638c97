"""What one reading of each collector costs: of the host for 8 and 64 ranks with real pools, of the driver on the
project's stand-in library, of a server of 8 ranks, and of the list of processes among 5,000 others.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from collectors.own import own_use
from ranktop.demo.launcher import DemoNode
from ranktop.sample import Collector, NoData, Processes, SourceError
from tests.bench.micro import Case, Work, measured
from tests.bench.rows import Row, of_runs
from tests.bench.standin import nvml_environment

POOL_BYTES = (62_222_336, 13_180_928)
OTHERS = 5000
CYCLE_LIMIT_MS = 8.0
SCRAPE_SECONDS = 5.0
ASKED_RUNS = 7

RANKS = """
import mmap, os, signal, sys, ctypes, setproctitle
pools = [int(size) for size in sys.argv[2:]]
for tp in range(int(sys.argv[1])):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        kept = [mmap.mmap(-1, size, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x8000) for size in pools]
        setproctitle.setproctitle(f"sglang::scheduler_TP{tp}")
        os.write(1, b".")
        signal.pause()
setproctitle.setproctitle(f"python -m sglang.launch_server --port 39902 --tp-size {sys.argv[1]} --hicache-size 0.05")
sys.stdin.read()
"""
MANY = """
import ctypes, os, signal, sys
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        os.write(1, b".")
        signal.pause()
sys.stdin.read()
"""


def rows() -> Iterator[Row]:
    """Issue 3: a 1 Hz cycle of the host's collectors for 8 ranks in 8 ms of CPU."""
    for ranks in (8, 64):
        with running(RANKS, ranks, str(ranks), *map(str, POOL_BYTES)) as pid:
            found = list(measured("collectors", "host", str(ranks), str(pid)))
        yield from found
        cycle = sum(row.value / (10 if "placement" in row.name else 1) for row in found)
        limit = CYCLE_LIMIT_MS if ranks == 8 else None
        yield Row(f"a second of the host's collectors, {ranks} ranks", cycle, "ms", limit)
    with tempfile.TemporaryDirectory() as folder, nvml_environment(Path(folder), [1] * 8) as environment:
        if environment is not None:
            yield from measured("collectors", "driver", environment=environment)
    with DemoNode("healthy") as node:
        node.wait_ready()
        yield from measured("collectors", "server", str(node.pid))
        shares = [100 * seconds / SCRAPE_SECONDS for seconds in _asked_seconds(node.pid)]
        yield of_runs("asking a server: share of its HTTP process", shares, "%", 1.0)
    with running(MANY, OTHERS, str(OTHERS)) as pid:
        yield from measured("collectors", "many", str(pid))


def _asked_seconds(pid: int) -> list[float]:
    """For how long the stand-in server had a request of ours, for one page and one look at its load: at most what it
    spent on them."""
    collectors, seen, taken = _server(pid), _processes(pid), list[float]()
    for _ in range(ASKED_RUNS):
        before = sum(asked.seconds for asked in own_use().asked.values())
        for name in ("metrics", "loads"):
            collectors[name].read(seen, 0.0)
        taken.append(sum(asked.seconds for asked in own_use().asked.values()) - before)
    return taken


def cases(what: str, *arguments: str) -> Iterator[Case]:
    """`host RANKS PID`, `driver`, `server PID` or `many PID`."""
    if what == "host":
        ranks, pid = arguments
        for name, period in _local(int(pid)).items():
            yield Case(f"{name}, {ranks} ranks", _reading(_local, int(pid), name), times=10 if period > 1 else 50)
    elif what == "driver":
        yield Case("nvml, 8 GPUs of a stand-in library", _nvml)
    elif what == "server":
        for name in _servers(int(arguments[0])):
            yield Case(f"{name}, 8 ranks", _reading(_servers, int(arguments[0]), name), times=10)
    else:
        yield Case(f"processes, one server's, {OTHERS:,} others running", _among(int(arguments[0])), times=10)
        yield Case(f"processes, the first look, {OTHERS:,} running", _first_look, times=1)


def _local(pid: int) -> dict[str, float]:
    """Name and cadence of every collector of the host but the driver's."""
    return {name: made.period_seconds for name, made in _host(pid).items()}


def _servers(pid: int) -> dict[str, float]:
    return {name: made.period_seconds for name, made in _server(pid).items()}


def _host(pid: int) -> dict[str, Collector]:
    from collectors.registry import local_groups

    groups = local_groups(proc_root="/proc", sys_root="/sys", only_pids=[pid])
    return {
        made.name: made
        for group in (*groups.first, *groups.later)
        for made in group
        if made.name not in ("nvml", "xid")
    }


def _server(pid: int) -> dict[str, Collector]:
    from collectors.server_registry import server_groups

    (server,) = _processes(pid).servers
    groups = server_groups(server, scrape_seconds=SCRAPE_SECONDS)
    return {made.name: made for group in groups for made in group}


def _processes(pid: int) -> Processes:
    from collectors.processes import ProcessesCollector

    return ProcessesCollector(only_pids=[pid]).read(None, 0.0)


def _reading(source: Callable[[int], dict[str, float]], pid: int, name: str) -> Callable[[], Work]:
    def make() -> Work:
        collectors = _host(pid) if source is _local else _server(pid)
        seen = _processes(pid)
        assert seen.ranks, "the server has no rank"
        if "pools" in collectors:
            # Placement asks about the pools that were found.
            collectors["pools"].read(seen, 0.0)
        return _work(collectors[name], seen)

    return make


def _work(collector: Collector, seen: Processes | None) -> Work:
    def read() -> None:
        with suppress(NoData, SourceError):
            collector.read(seen, 0.0)

    # Warm: what a first reading sets up, all later ones have.
    read()
    return read


def _nvml() -> Work:
    from collectors.nvml import NvmlCollector
    from collectors.nvml_session import NvmlSession

    collector = NvmlCollector(NvmlSession())
    assert len(collector.read(Processes(), 0.0).gpus) == 8
    return _work(collector, Processes())


def _among(pid: int) -> Callable[[], Work]:
    """Every cycle two processes come and go, so that there is something to find."""

    def make() -> Work:
        from collectors.processes import ProcessesCollector

        collector = ProcessesCollector()
        collector.read(None, 0.0)

        def cycle() -> None:
            children = [subprocess.Popen(["sleep", "0.01"]) for _ in range(2)]
            collector.read(None, 0.0)
            for child in children:
                child.wait()

        return cycle

    return make


def _first_look() -> Work:
    from collectors.processes import ProcessesCollector

    return lambda: ProcessesCollector().read(None, 0.0)


@contextmanager
def running(script: str, children: int, *arguments: str) -> Iterator[int]:
    """A program that starts so many children, each of which writes a dot; its pid. All end with its input."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert process.stdout
    heard = 0
    while heard < children:
        heard += len(process.stdout.read(children - heard) or b"")
    # The title comes after the last child.
    while b"launch_server" not in Path(f"/proc/{process.pid}/cmdline").read_bytes() and script is RANKS:
        os.sched_yield()
    try:
        yield process.pid
    finally:
        process.communicate()
