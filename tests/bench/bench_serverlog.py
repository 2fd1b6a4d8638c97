"""Attach to a log of 1 GB, and follow 10,000 lines: `python tests/bench/bench_serverlog.py [FOLDER]` (1 GB of disk)."""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

from collectors.serverlog import ServerLogCollector

LOG_BYTES = 1_000_000_000
FOLLOWED_LINES = 10_000

ARGS = "[2026-11-29 09:00:00] server_args=ServerArgs(model_path='/m', tp_size=8, hicache_size={})\n"
LINES = (
    "[2026-11-29 09:02:54 TP0] Decode batch, #running-req: 6, #token: 61440, token usage: 0.14, accept len: 2.81, "
    "accept rate: 0.60, cuda graph: True, gen throughput (token/s): 410.52, #queue-req: 0\n",
    "[2026-11-29 09:02:55 TP0] Prefill batch, #new-seq: 2, #new-token: 5120, #cached-token: 36864, token usage: 0.31, "
    "#running-req: 6, #queue-req: 1, #pending-token: 9216, cuda graph: False, input throughput (token/s): 18211.07\n",
    '[2026-11-29 09:02:55] INFO:     127.0.0.1:52024 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n',
    "[2026-11-29 09:02:54 TP3] HiCache prefetch success req=8f1d0c completed_local=6400 completed_synced=6400 "
    "matched=0 loaded=6400 released=0 occupied=0\n",
)


def write_log(path: Path) -> None:
    """Two starts, then LOG_BYTES of traffic."""
    chance = random.Random(1)
    block = "".join(chance.choice(LINES) for _ in range(40_000))
    with path.open("w") as file:
        file.write(ARGS.format(96) + ARGS.format(120))
        while file.tell() < LOG_BYTES:
            file.write(block)


def main() -> None:
    """Print both figures."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        path = Path(folder) / "server.log"
        write_log(path)
        collector = ServerLogCollector("bench", path=path)
        started = time.perf_counter()
        events = list(collector.read(None, time.time()))
        print(
            f"attach to {path.stat().st_size / 1e9:.2f} GB: {time.perf_counter() - started:.2f} s, {len(events)} events"
        )
        reads = 1
        while sum(event.kind == "server_args" for event in events) < 2:
            events += collector.read(None, time.time())
            reads += 1
        print(f"both starts known after {reads} reads, {time.perf_counter() - started:.2f} s")
        chance = random.Random(2)
        with path.open("a") as file:
            file.writelines(chance.choice(LINES) for _ in range(FOLLOWED_LINES))
        started = time.process_time()
        collector.read(None, time.time())
        print(f"follow {FOLLOWED_LINES} lines: {time.process_time() - started:.3f} s of CPU")
        collector.close()


if __name__ == "__main__":
    main()
