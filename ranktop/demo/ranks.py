"""The children of the main process: one rank a GPU, and the detokenizer."""

from __future__ import annotations

from pathlib import Path

from ranktop.demo.child import Child
from ranktop.demo.scenarios import Scenario
from ranktop.demo.sizes import PoolSizes, demo_plan
from ranktop.plan import RankPlan

_END_SECONDS = 3.0


class StartError(Exception):
    """The node cannot start: one line that says what was tried and what came back."""


class Ranks:
    """Starts them all at once. `ready` when every rank has its pools and its series."""

    def __init__(self, scenario: Scenario, sizes: PoolSizes, directory: Path, log_fd: int, launcher_fd: int) -> None:
        self.ready = False
        self._by_tp = {
            tp: Child(plan.rank, "ranktop.demo.rank", _rank_arguments(plan, scenario, sizes, directory), log_fd)
            for tp, plan in enumerate(demo_plan(scenario.launch).ranks)
        }
        title = ["--title", "sglang::detokenizer", "--directory", str(directory), "--launcher-fd", str(launcher_fd)]
        self._detokenizer = Child("detokenizer", "ranktop.demo.detokenizer", title, log_fd, pass_fds=(launcher_fd,))

    @property
    def children(self) -> list[Child]:
        return [*self._by_tp.values(), self._detokenizer]

    @property
    def live(self) -> dict[int, Child]:
        """Ranks that have not ended, by tp. Asking reaps those that have."""
        return {tp: child for tp, child in self._by_tp.items() if child.exit_code is None}

    def hear(self, child: Child) -> bool:
        """Take what a child has said; False when it will say no more. StartError when it ends before all are ready."""
        for message in child.hear():
            if message is None:
                if not self.ready:
                    raise StartError(f"{child.name} ended with code {child.wait(1.0)} before the node was ready")
                return False
            if "failed" in message:
                raise StartError(f"{child.name} could not start: {message['failed']}")
            child.ready = child.ready or "ready" in message
        self.ready = all(rank.ready for rank in self._by_tp.values())
        return True

    def stop(self) -> None:
        """End all of them, by the pipe, and by SIGKILL what does not listen."""
        for child in self.children:
            child.hang_up()
        for child in self.children:
            child.wait(_END_SECONDS)


def _rank_arguments(plan: RankPlan, scenario: Scenario, sizes: PoolSizes, directory: Path) -> list[str]:
    primary = sizes.primary_bytes * scenario.primary_percent.get(plan.tp, 100) // 100
    return [
        *("--title", f"sglang::scheduler_{plan.rank.replace(' ', '_')}"),
        *("--tp", str(plan.tp)),
        *("--engine", demo_plan(scenario.launch).launch.role),
        *("--metrics", str(directory / "metrics")),
        *("--pools", str(primary), str(sizes.indexer_allocated_bytes)),
    ]
