"""The children of the main process: one rank a GPU, and the detokenizer."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from pathlib import Path

from ranktop.demo.child import Child
from ranktop.demo.cpus import node_cpus
from ranktop.demo.gpus import numa_node
from ranktop.demo.scenarios import Scenario
from ranktop.demo.sizes import PoolSizes, demo_plan
from ranktop.plan import RankPlan

_END_SECONDS = 3.0


class StartError(Exception):
    """The node cannot start: one line that says what was tried and what came back."""


class Ranks:
    """Starts them all at once. `settled` when every rank has its pools and its series."""

    def __init__(self, scenario: Scenario, sizes: PoolSizes, directory: Path, launcher_fd: int) -> None:
        self.settled = False
        self.orphan_pid: int | None = None
        plans = demo_plan(scenario.launch).ranks
        arguments = [_rank_arguments(plan, scenario, sizes, directory) for plan in plans]
        self._by_tp = {tp: Child(plan.rank, "ranktop.demo.rank", arguments[tp]) for tp, plan in enumerate(plans)}
        title = ["--title", "sglang::detokenizer", "--directory", str(directory), "--launcher-fd", str(launcher_fd)]
        self._detokenizer = Child("detokenizer", "ranktop.demo.detokenizer", title, pass_fds=(launcher_fd,))
        self._orphan: Child | None = None
        if scenario.orphan is not None:
            self._orphan = Child("the orphan", "ranktop.demo.orphan", arguments[scenario.orphan])

    @property
    def children(self) -> list[Child]:
        return [*self._by_tp.values(), self._detokenizer, *([self._orphan] if self._orphan else [])]

    @property
    def live(self) -> dict[int, Child]:
        """Ranks that have not ended, by tp. Asking reaps those that have."""
        return {tp: child for tp, child in self._by_tp.items() if child.exit_code is None}

    def hear(self, child: Child) -> bool:
        """Take what a child has said; False when it will say no more. StartError when it ends before all are ready."""
        for message in child.hear():
            if message is None:
                code = child.wait(_END_SECONDS)
                if not self.settled:
                    raise StartError(f"{child.name} ended with code {code} before the node was ready")
                return False
            if "failed" in message:
                raise StartError(f"{child.name} could not start: {message['failed']}")
            child.ready = True
            if child is self._orphan:
                self.orphan_pid = message["pid"]
        self.settled = all(other.ready for other in self.children if other is not self._detokenizer)
        return True

    def stop(self) -> None:
        """End all of them, by the pipe, and by SIGKILL what does not listen."""
        for child in self.children:
            child.hang_up()
        for child in self.children:
            child.wait(_END_SECONDS)
        if self._orphan is not None and self.orphan_pid is not None:
            ended, _, _ = select.select([self._orphan.stdout], [], [], _END_SECONDS)
            if not ended:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.orphan_pid, signal.SIGKILL)


def _rank_arguments(plan: RankPlan, scenario: Scenario, sizes: PoolSizes, directory: Path) -> list[str]:
    primary = sizes.primary_bytes * scenario.primary_percent.get(plan.tp, 100) // 100
    pools = [primary, sizes.indexer_allocated_bytes] if sizes.tokens else []
    pools = pools[: scenario.pools_made.get(plan.tp, 2)]
    tag = "" if len(demo_plan(scenario.launch).ranks) == 1 else f"_{plan.rank.replace(' ', '_')}"
    return [
        *("--title", f"sglang::scheduler{tag}"),
        *("--tp", str(plan.tp)),
        *("--sglang", scenario.launch.version),
        *("--engine", demo_plan(scenario.launch).launch.role),
        *("--metrics", str(directory / "metrics")),
        *("--cpus", *map(str, node_cpus(numa_node(plan.tp, scenario.launch.gpus)))),
        *("--pools", *map(str, pools)),
    ]
