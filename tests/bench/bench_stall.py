"""How long a rank is held up by being watched: a process with a 4 GiB pool maps, touches and unmaps 1 MiB in a loop.

Its longest loop, alone and watched. Means something on a machine with nothing else to run: a busy scheduler stalls
the loop for longer than any reader.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from collectors.placement import PlacementCollector
from collectors.pools import PoolsCollector
from ranktop.sample import Processes, RankProcess, RankTag
from tests.bench.rows import Peer, Row, of_runs

RUNS = 5
RUN_SECONDS = 1.5
POOL_BYTES = 4 << 30

VICTIM = """
import mmap, sys, time
pool = mmap.mmap(-1, int(sys.argv[1]), mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x8000)
print("ready", flush=True)
for line in sys.stdin:
    worst, last = 0.0, time.perf_counter()
    end = last + float(line)
    while last < end:
        block = mmap.mmap(-1, 1 << 20, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
        block[0] = 1
        block.close()
        now = time.perf_counter()
        worst, last = max(worst, now - last), now
    print(worst, flush=True)
"""

Watch = Callable[[RankProcess, threading.Event], None]


def rows() -> Iterator[Row]:
    """Design section 8: no page walk. What one does stands beside, which shows that the measure sees a stall."""
    command = [sys.executable, "-c", VICTIM, str(POOL_BYTES)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        rank = RankProcess("bench", RankTag(), process.pid, 1, "R", rss_shmem_bytes=POOL_BYTES)
        alone, watched, often, walk = (
            [_longest_ms(process, rank, watch) for _ in range(RUNS)]
            for watch in (None, _watching(1.0), _watching(100.0), _walk)
        )
        process.communicate()
    walked = Peer("one walk of its pages", of_runs("", walk, "ms").value)
    yield of_runs("longest loop of a rank, alone", alone, "ms")
    yield of_runs("longest loop of a rank, watched at 1 Hz", watched, "ms").beside(walked)
    yield of_runs("longest loop of a rank, watched at 100 Hz", often, "ms").beside(walked)


def _longest_ms(process: subprocess.Popen[str], rank: RankProcess, watch: Watch | None) -> float:
    assert process.stdin
    assert process.stdout
    stop = threading.Event()
    thread = threading.Thread(target=watch, args=(rank, stop)) if watch else None
    process.stdin.write(f"{RUN_SECONDS}\n")
    process.stdin.flush()
    if thread:
        thread.start()
    worst = float(process.stdout.readline()) * 1e3
    stop.set()
    if thread:
        thread.join()
    return worst


def _watching(per_second: float) -> Watch:
    """All that ranktop reads of a rank, maps and placement every time, which ranktop does not."""

    def watch(rank: RankProcess, stop: threading.Event) -> None:
        pools = PoolsCollector()
        placement = PlacementCollector(lambda: pools.latest)
        number = 0
        while not stop.wait(1 / per_second):
            number += 1
            # Another size every time, so that maps is read every time.
            one = RankProcess("bench", rank.tag, rank.pid, 1, "R", rss_shmem_bytes=POOL_BYTES + number)
            seen = Processes(ranks=(one,))
            for name in ("stat", "status"):
                Path(f"/proc/{rank.pid}/{name}").read_bytes()
            pools.read(seen, float(number))
            placement.read(seen, float(number))

    return watch


def _walk(rank: RankProcess, stop: threading.Event) -> None:
    """What ranktop never does."""
    if not stop.wait(RUN_SECONDS / 3):
        Path(f"/proc/{rank.pid}/smaps_rollup").read_bytes()
