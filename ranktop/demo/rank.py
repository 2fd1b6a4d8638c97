"""One rank of the stand-in node: a process with SGLang's title, real host pools and its own metric files.

It does what the main process tells it through its standard input, one JSON object a line: `operations` on its series,
`grow` its heap by so many bytes, `exit` with a code. It ends when that closes. What it says on standard output is one
JSON object: `{"ready": true, "pid": pid}` or `{"failed": why}`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import mmap
import os
import sys

from ranktop.demo.lifeline import die_with_parent


def main() -> None:
    options = _options()
    if not options.parentless:
        die_with_parent()
    import setproctitle

    setproctitle.setproctitle(options.title)
    os.sched_setaffinity(0, options.cpus)
    with contextlib.ExitStack() as pools:
        try:
            for size_bytes in options.pools:
                pools.enter_context(map_pool(size_bytes))
        except OSError as error:
            _say({"failed": f"mapping {sum(options.pools):,} bytes of host pools: {error.strerror}"})
            raise SystemExit(1) from None
        # As a real rank is killed: its pools stay mapped until the kernel takes them, and nothing winds down before.
        os._exit(_obey(options))


def _obey(options: argparse.Namespace) -> int:
    """Do what standard input says until it closes or asks for an exit code."""
    # Importing ranktop dropped it; this process is to write into the stand-in server's files.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = options.metrics
    from ranktop.demo.exposition import Writer, rank_labels, scheduler_families

    writer = Writer(scheduler_families(options.sglang), rank_labels(options.tp, options.engine))
    heap = bytearray()
    _say({"ready": True, "pid": os.getpid()})
    for line in sys.stdin:
        order = json.loads(line)
        if "exit" in order:
            return order["exit"]
        # Written to, so that the pages are there and stay there.
        heap += b"\1" * order.get("grow", 0)
        writer.apply(order.get("operations", []))
    return 0


def map_pool(size_bytes: int) -> mmap.mmap:
    """A host pool as SGLang's default allocator maps it: shared, anonymous, every page present."""
    return mmap.mmap(-1, size_bytes, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)


def _say(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--title", required=True)
    parser.add_argument("--tp", type=int, required=True)
    parser.add_argument("--sglang", required=True)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--metrics", required=True)
    parser.add_argument("--cpus", type=int, nargs="+", required=True, help="of its NUMA node, as numactl binds it")
    parser.add_argument("--parentless", action="store_true", help="outlive the parent")
    parser.add_argument("--pools", type=int, nargs="*", required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
