"""What reading the host costs: CPU for 8 ranks, discovery among many processes, and the stall of a watched rank.

    python tests/bench/bench_collectors.py [cycle] [discovery] [victim]

Figures are for the machine it runs on; nothing else should run there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from collectors.cgroup import CgroupCollector
from collectors.hostmem import HostMemCollector
from collectors.kernellog import KernelLogCollector
from collectors.numa import NumaNodesCollector
from collectors.placement import PlacementCollector
from collectors.pools import PoolsCollector
from collectors.processes import ProcessesCollector
from ranktop.sample import NoData, Processes, RankProcess, RankTag, SourceError

POOL_BYTES = (62_222_336, 13_180_928)
TIMES_LARGER = 8
CYCLES = 60
VICTIM_SECONDS = 5.0
VICTIM_POOL_BYTES = 4 << 30

RANK = """
import mmap, signal, sys, setproctitle
pools = [mmap.mmap(-1, size, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x8000) for size in map(int, sys.argv[2:])]
setproctitle.setproctitle(sys.argv[1])
print("ready", flush=True)
signal.pause()
"""
MAIN = """
import subprocess, sys, signal, setproctitle
ranks = [subprocess.Popen([sys.executable, "-c", sys.argv[1], f"sglang::scheduler_TP{tp}", *sys.argv[2:]],
                          stdout=subprocess.PIPE) for tp in range(8)]
for rank in ranks:
    rank.stdout.readline()
setproctitle.setproctitle("python -m sglang.launch_server --port 39902 --tp-size 8 --hicache-size 0.05")
print("ready", flush=True)
sys.stdin.read()
for rank in ranks:
    rank.kill()
"""
MANY = """
import ctypes, os, signal, sys
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        signal.pause()
print("ready", flush=True)
sys.stdin.read()
"""
VICTIM = """
import mmap, sys, time
pool = mmap.mmap(-1, int(sys.argv[1]), mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x8000)
print("ready", flush=True)
for line in sys.stdin:
    worst, stalls, count, last = 0.0, 0, 0, time.perf_counter()
    end = last + float(line)
    while last < end:
        block = mmap.mmap(-1, 1 << 20, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
        block[0] = 1
        block.close()
        now = time.perf_counter()
        worst, stalls, count, last = max(worst, now - last), stalls + (now - last > 0.010), count + 1, now
    print(worst, stalls, count, flush=True)
"""


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A program that says ready, and ends when its input does."""
    process = subprocess.Popen(
        [sys.executable, "-c", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    process.stdout.readline()
    try:
        yield process
    finally:
        process.communicate()


def read(collector: Any, processes: Processes | None, now: float) -> tuple[float, Any]:
    """CPU milliseconds of this thread for one reading, and what it gave."""
    value = None
    started = time.thread_time()
    with suppress(NoData, SourceError):
        value = collector.read(processes, now)
    return (time.thread_time() - started) * 1e3, value


def cycle() -> None:
    """The same with pools of a demo and with larger ones: no cost may grow with them."""
    for times in (1, TIMES_LARGER):
        print(f"8 ranks, pools of {times * sum(POOL_BYTES) / 1e6:.0f} MB each:")
        measured_cycle([times * size for size in POOL_BYTES])


def measured_cycle(pools_bytes: list[int]) -> None:
    """One cycle of every collector of the host, at its cadence, for a server of 8 ranks."""
    with running(MAIN, RANK, *map(str, pools_bytes)) as server:
        processes, pools = ProcessesCollector(only_pids=[server.pid]), PoolsCollector()
        collectors: dict[str, Any] = {
            "hostmem": HostMemCollector(),
            "numa": NumaNodesCollector(),
            "cgroup": CgroupCollector(),
            "pools": pools,
            "kernellog": KernelLogCollector(),
            "placement": PlacementCollector(lambda: pools.latest),
        }
        spent: dict[str, list[float]] = {name: [] for name in ("processes", *collectors)}
        for number in range(CYCLES):
            took, seen = read(processes, None, float(number))
            spent["processes"].append(took)
            for name, collector in collectors.items():
                if name != "placement" or number % 10 == 0:
                    spent[name].append(read(collector, seen, float(number))[0])
            time.sleep(0.02)
        assert len(seen.ranks) == 8
        assert sum(map(len, pools.latest.values())) >= 16
    total = 0.0
    for name, times in spent.items():
        later = sorted(times[1:])
        mean = sum(later) / len(later)
        total += mean / (10 if name == "placement" else 1)
        print(f"{name:10} first {times[0]:7.2f} ms   then median {later[len(later) // 2]:6.3f}  mean {mean:6.3f} ms")
    print(f"a 1 Hz cycle of all of them for 8 ranks: {total:.2f} ms CPU (budget 8 ms)")


def discovery() -> None:
    """The processes collector among 5,000 other processes, while two new ones start every cycle."""
    with running(MANY, "5000"):
        collector = ProcessesCollector()
        times = [read(collector, None, 0.0)[0] for _ in range(3)]
        for _ in range(CYCLES * 2):
            children = [subprocess.Popen(["sleep", "0.01"]) for _ in range(2)]
            times.append(read(collector, None, 0.0)[0])
            for child in children:
                child.wait()
    later = sorted(times[3:])
    middle, high, most = later[len(later) // 2], later[len(later) * 95 // 100], later[-1]
    print(
        f"5,000 processes: first look {times[0]:.1f} ms, then median {middle:.2f}, 95 % {high:.2f}, max {most:.2f} ms"
    )


def victim() -> None:
    """A process with a 4 GiB pool maps, touches and unmaps 1 MiB in a loop: its longest loop alone and watched.

    Means something on a machine with nothing else to run: a busy scheduler stalls the loop for longer than any reader.
    """
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    with running(VICTIM, str(VICTIM_POOL_BYTES)) as process:
        assert process.stdin
        assert process.stdout
        rank = RankProcess("bench", RankTag(), process.pid, 1, "R", rss_shmem_bytes=VICTIM_POOL_BYTES)
        rows = (
            ("alone", None),
            ("watched at 1 Hz", watched_at(1.0)),
            ("watched at 100 Hz", watched_at(100.0)),
            ("one walk of its pages", walked),
        )
        for what, watch in rows:
            stop = threading.Event()
            thread = threading.Thread(target=watch, args=(rank, stop)) if watch else None
            process.stdin.write(f"{VICTIM_SECONDS}\n")
            process.stdin.flush()
            if thread:
                thread.start()
            worst, stalls, count = process.stdout.readline().split()
            stop.set()
            if thread:
                thread.join()
            print(f"{what:22} longest {float(worst) * 1e3:8.2f} ms, {stalls:>3} over 10 ms, of {count} loops")


def watched_at(per_second: float) -> Callable[[RankProcess, threading.Event], None]:
    """All that ranktop reads of a rank, maps and placement every time, which ranktop does not."""

    def watch(rank: RankProcess, stop: threading.Event) -> None:
        pools = PoolsCollector()
        placement = PlacementCollector(lambda: pools.latest)
        number = 0
        while not stop.wait(1 / per_second):
            number += 1
            # Another size every time, so that maps is read every time.
            one = RankProcess("bench", rank.tag, rank.pid, 1, "R", rss_shmem_bytes=VICTIM_POOL_BYTES + number)
            seen = Processes(ranks=(one,))
            for name in ("stat", "status"):
                Path(f"/proc/{rank.pid}/{name}").read_bytes()
            pools.read(seen, float(number))
            placement.read(seen, float(number))

    return watch


def walked(rank: RankProcess, stop: threading.Event) -> None:
    """What ranktop never does: this shows that the measure sees a stall."""
    if not stop.wait(1.0):
        Path(f"/proc/{rank.pid}/smaps_rollup").read_bytes()


PARTS = {"cycle": cycle, "discovery": discovery, "victim": victim}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
