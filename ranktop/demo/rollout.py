"""A second launch that takes the place of the first one after a while, on the same port: an orderly rollout."""

from __future__ import annotations

import contextlib
import threading
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from ranktop.demo.launcher import DemoError, DemoNode


class Rollout:
    """While the `with` block runs: ends `node` when its scenario says so, and starts what the scenario names next."""

    def __init__(self, node: DemoNode, seed: int) -> None:
        self._node = node
        self._seed = seed
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._replace, name="rollout")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        self._thread.join()

    def _replace(self) -> None:
        scenario, clock = self._node.scenario, self._node.clock
        if scenario.relaunch is None or self._left.wait(scenario.relaunch_after_seconds / clock.speed):
            return
        port = urlsplit(self._node.url).port
        self._node.close()
        # Its port may be taken meanwhile, and the block may be left before it is ready: then nothing follows.
        with contextlib.suppress(DemoError), DemoNode(scenario.relaunch, port, self._seed, clock=clock) as node:
            node.wait_ready()
            self._left.wait()
