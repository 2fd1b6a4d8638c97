"""Ranks that are killed, stopped, orphaned, replaced; a pid that somebody else has now. Real processes with titles."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from collectors.pools import PoolsCollector
from collectors.processes import ProcessesCollector
from faults.fault import Fault, Stage, Watched
from ranktop.sample import RankProcess, Sample
from support.held import Held
from tui.views.rank_rows import _STATES

_TREE = Path(__file__).parents[1] / "collectors" / "process_tree.py"
_TITLE = "sglang::scheduler_TP{}"
_LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


class TwoRanks:
    """A main process and two ranks that do nothing."""

    def __init__(self, port: int, linger: bool = False) -> None:
        self._launch = f"python -m sglang.launch_server --model-path a/b --tp-size 2 --port {port}"
        self._linger = linger
        self._held = Held()
        self.start()

    def start(self) -> None:
        ranks = [{"title": _TITLE.format(tp), "linger": self._linger} for tp in range(2)]
        node = {"title": self._launch, "children": ranks}
        self.process = subprocess.Popen(
            [sys.executable, str(_TREE), json.dumps(node)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        told = [self.process.stdout.readline().strip().partition(" ") for _ in range(3)]
        self.pids = {title: int(pid) for pid, _, title in told}
        for pid in {self.process.pid, *self.pids.values()}:
            self._held.hold(pid)

    def rank(self, tp: int) -> int:
        return self.pids[_TITLE.format(tp)]

    def watched(self) -> Watched:
        return Watched(ProcessesCollector(only_pids=[self.process.pid]), PoolsCollector(), source="processes")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._held.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def _states(sample: Sample) -> dict[str, RankProcess]:
    ranks = sample.processes.ranks if sample.processes is not None else ()
    return {str(rank.tag): rank for rank in ranks}


def _both(watched: Watched) -> Sample:
    return watched.until(lambda one: [rank.state for rank in _states(one).values()] == ["S", "S"])


def _killed(stage: Stage, shows: str) -> None:
    with TwoRanks(39_901) as server, server.watched() as watched:
        _both(watched)
        os.kill(server.rank(1), signal.SIGKILL)
        found = watched.finds("RANK-DEAD", shows)
        assert found.ranks == ("TP1",)
        assert found.severity == "critical"
        watched.others_go_on(watched.well())


def _stopped(stage: Stage, shows: str) -> None:
    with TwoRanks(39_902) as server, server.watched() as watched:
        _both(watched)
        os.kill(server.rank(1), signal.SIGSTOP)
        sample = watched.until(lambda one: _states(one)["TP1"].state == "T")
        assert _STATES["T"][0] == shows
        watched.others_go_on(sample)
        os.kill(server.rank(1), signal.SIGCONT)
        _both(watched)


def _restarted(stage: Stage, shows: str) -> None:
    with TwoRanks(39_904) as server:
        watched = Watched(ProcessesCollector(only_urls=["http://127.0.0.1:39904"]), source="processes")
        with watched:
            before = _states(_both(watched))
            server.process.kill()
            server.process.wait()
            server.start()
            after = _states(watched.until(lambda one: _states(one).keys() == before.keys() != {} and _new(one, before)))
            watched.finds("RANK-RESTARTED", shows)
            assert {rank.server for rank in after.values()} == {"127.0.0.1:39904"}
            watched.others_go_on(watched.well())


def _new(sample: Sample, before: dict[str, RankProcess]) -> bool:
    return all(rank.start_ticks != before[tag].start_ticks for tag, rank in _states(sample).items())


def _reused(stage: Stage, shows: str) -> None:
    """The kernel gives a dead rank's pid to a program that has nothing to do with it."""
    with TwoRanks(39_905, linger=True) as server, Watched(ProcessesCollector(), source="processes") as watched:
        pids = {server.rank(0), server.rank(1)}

        def seen(sample: Sample) -> set[int]:
            ranks = sample.processes.ranks if sample.processes is not None else ()
            return pids & {rank.pid for rank in ranks}

        watched.until(lambda one: seen(one) == pids)
        os.kill(server.rank(1), signal.SIGKILL)
        # Its parent never reaps it: without that parent, init does.
        server.process.kill()
        server.process.wait()
        with _process_with(server.rank(1)):
            sample = watched.until(lambda one: seen(one) == {server.rank(0)})
            watched.finds("RANK-DEAD", shows)
            watched.others_go_on(sample)
            assert seen(watched.well()) == {server.rank(0)}


def _orphaned(stage: Stage, shows: str) -> None:
    """The main process dies and its ranks live on, with their memory."""
    with TwoRanks(39_907, linger=True) as server, Watched(ProcessesCollector(), source="processes") as watched:
        pids = {server.rank(0), server.rank(1)}

        def orphans(sample: Sample) -> dict[int, bool | None]:
            ranks = sample.processes.ranks if sample.processes is not None else ()
            return {rank.pid: rank.orphan for rank in ranks if rank.pid in pids}

        watched.until(lambda one: len(orphans(one)) == 2 and not any(orphans(one).values()))
        server.process.kill()
        server.process.wait()
        sample = watched.until(lambda one: list(orphans(one).values()) == [True, True])
        assert {rank.server for rank in sample.processes.ranks if rank.pid in pids} == {shows}
        watched.others_go_on(watched.well())


def _churn(stage: Stage, shows: str) -> None:
    """Ranks come and go within a reading: files vanish between their listing and the last read of them."""
    with Watched(ProcessesCollector(), PoolsCollector(), source="processes") as watched:
        with _churning():
            ends = time.monotonic() + 4
            before = watched.well()
            while time.monotonic() < ends:
                sample = watched.until(lambda _: True)
                for name in ("processes", "pools"):
                    state = watched.state(sample, name)
                    assert state is None or state.state != "error", state
                time.sleep(0.05)
            watched.others_go_on(before)
        settled = watched.well()
        state = watched.state(settled)
        assert state is not None
        assert state.state == shows


@contextmanager
def _churning() -> Generator[None]:
    """A shell whose children bear SGLang's title for a few milliseconds each."""
    title = _TITLE.format(0)
    loop = f"while :; do (exec -a '{title}' sleep 0.01) & (exec -a '{title}' true) & wait; done"
    churn = subprocess.Popen(["bash", "-c", loop], start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        os.killpg(churn.pid, signal.SIGKILL)
        churn.wait()


class _process_with:  # noqa: N801 - reads as a block
    """A harmless process with this very pid; skips where pids cannot be asked for."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def __enter__(self) -> None:
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                _LAST_PID.write_text(str(self._pid - 1))
            except OSError as problem:
                pytest.skip(f"pids cannot be asked for: {_LAST_PID}: {problem.strerror}")
            self._sleeper = subprocess.Popen(["sleep", "60"])
            if self._sleeper.pid == self._pid:
                return
            self._end()
        pytest.skip(f"pid {self._pid} could not be had (another program was faster)")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def _end(self) -> None:
        self._sleeper.kill()
        self._sleeper.wait()


FAULTS = (
    Fault("rank", "is killed (-9)", "TP1", _killed),
    Fault("rank", "is stopped (SIGSTOP), then goes on", "stopped (T)", _stopped),
    Fault("rank", "is started again with its server", "TP0", _restarted),
    Fault("rank", "is orphaned: its server died, it did not", "127.0.0.1:39907", _orphaned),
    Fault("rank", "comes and goes while its files are read", "ok", _churn),
    Fault("rank", "its pid belongs to another program now", "127.0.0.1:39905", _reused),
)
