"""The server's log: attaching to one of 1 GB, and following 10,000 new lines."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from collectors.serverlog import ServerLogCollector
from tests.bench.micro import Case, Work, measured
from tests.bench.rows import Row

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


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        _write_log(path)
        yield from measured("log", folder)


def cases(folder: str) -> Iterator[Case]:
    path = Path(folder) / "server.log"
    yield Case("attach to a log of 1 GB", lambda: lambda: _attach(path), "s", times=1, timer=time.perf_counter)
    yield Case("attach to a log of 1 GB, both starts known", lambda: lambda: _both_starts(path), "s", times=1)
    yield Case(f"follow {FOLLOWED_LINES:,} lines of log", lambda: _following(Path(folder) / "followed.log"), times=1)


def _attach(path: Path) -> None:
    collector = ServerLogCollector("bench", path=path)
    list(collector.read(None, time.time()))
    collector.close()


def _both_starts(path: Path) -> None:
    """The end of the log comes first, what is before it in steps."""
    collector, starts = ServerLogCollector("bench", path=path), 0
    while starts < 2:
        starts += sum(event.kind == "server_args" for event in collector.read(None, time.time()))
    collector.close()


def _following(path: Path) -> Work:
    """Writing the lines is in it too: about a tenth."""
    path.write_text(ARGS.format(96))
    collector, chance = ServerLogCollector("bench", path=path), random.Random(2)
    list(collector.read(None, time.time()))
    text = "".join(chance.choice(LINES) for _ in range(FOLLOWED_LINES))

    def follow() -> None:
        with path.open("a") as file:
            file.write(text)
        collector.read(None, time.time())

    return follow


def _write_log(path: Path) -> None:
    """Two starts, then LOG_BYTES of traffic."""
    chance = random.Random(1)
    block = "".join(chance.choice(LINES) for _ in range(40_000))
    with path.open("w") as file:
        file.write(ARGS.format(96) + ARGS.format(120))
        while file.tell() < LOG_BYTES:
            file.write(block)
