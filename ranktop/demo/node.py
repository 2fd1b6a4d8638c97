"""The main process of a stand-in node: parent of the ranks, HTTP server, log, simulated hardware.

It says to the launcher on standard output, one JSON object a line: `{"url": ...}`, then `{"ready": true, "orphan":
pid}` or `{"failed": why}`, and ends when its standard input closes or a signal asks it to. Its log is its standard
error, which the ranks inherit.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ranktop.clock import NodeClock
from ranktop.demo.launch import HOST
from ranktop.demo.ranks import Ranks, StartError
from ranktop.demo.scenarios import find_scenario

if TYPE_CHECKING:
    from ranktop.demo.standin import StandIn

_TICK_SECONDS = 1.0


def main() -> None:
    options = _options()
    directory = Path(options.directory)
    try:
        _run(options, directory)
    except StartError as error:
        _say({"failed": str(error)})
        raise SystemExit(1) from None
    except BrokenPipeError:
        raise SystemExit(1) from None  # the launcher is gone and hears nothing any more
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run(options: argparse.Namespace, directory: Path) -> None:
    wake = _wake_on_signals()
    metrics = directory / "metrics"
    metrics.mkdir()
    # Importing ranktop dropped it; this process writes the HTTP process's own series.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)
    import setproctitle

    from ranktop.demo.standin import StandIn

    scenario = find_scenario(options.scenario)
    assert scenario is not None
    clock = NodeClock(options.origin, options.speed)
    node = StandIn(scenario, options.seed, clock, directory, options.port)
    setproctitle.setproctitle(scenario.launch.line(node.port, node.bootstrap_port))
    _say({"url": f"http://{HOST}:{node.port}"})
    node.log_start()
    ranks = Ranks(scenario, node.sizes, directory, launcher_fd=sys.stdin.fileno())
    try:
        _loop(node, ranks, wake)
    finally:
        node.close()
        ranks.stop()


def _loop(node: StandIn, ranks: Ranks, wake: socket.socket) -> None:
    """Until the launcher closes our standard input, or a signal comes."""
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        selector.register(wake, selectors.EVENT_READ)
        for child in ranks.children:
            selector.register(child.stdout, selectors.EVENT_READ, child)
        tick_at = time.monotonic()
        while True:
            for key, _ in selector.select(max(0.0, tick_at - time.monotonic())):
                if key.data is None:
                    return
                if not ranks.hear(key.data):
                    selector.unregister(key.fileobj)
            if ranks.settled and not node.is_settled:
                node.settle(ranks)
                _say({"ready": True, "orphan": ranks.orphan_pid})
                tick_at = time.monotonic()
            if time.monotonic() >= tick_at:
                node.tick(ranks, _TICK_SECONDS)
                tick_at = max(tick_at + _TICK_SECONDS, time.monotonic())


def _wake_on_signals() -> socket.socket:
    """A socket that becomes readable when a signal asks this process to end."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    signal.set_wakeup_fd(theirs.detach())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return ours


def _say(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--title", required=True, help="only makes room for the title")
    parser.add_argument("--scenario", required=True)
    parser.add_argument("--directory", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--speed", type=float, required=True)
    parser.add_argument("--origin", type=float, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
