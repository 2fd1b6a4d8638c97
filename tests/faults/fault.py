"""What a fault is, and a poller on real sources of which one can be broken."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import pytest

from collectors.hostmem import HostMemCollector
from collectors.poller import Poller
from ranktop.finding import Finding
from ranktop.reconcile import Reconciler
from ranktop.sample import Collector, Event, Processes, Sample, SourceState


class Stage(NamedTuple):
    """What a trial has to work with."""

    folder: Path
    patch: pytest.MonkeyPatch


class Fault(NamedTuple):
    """One row: `what` happens to the `subject`, and words of what the user then sees."""

    subject: str
    what: str
    shows: str
    trial: Callable[[Stage, str], None]
    """Breaks it, finds the words, sees that the rest goes on, mends it and sees that it recovers."""


class Hurried:
    """A collector that is read ten times a second, so that a trial takes no minute."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self.name, self.part, self.server = collector.name, collector.part, collector.server
        self.period_seconds = 0.1

    def read(self, processes: Processes | None, now: float) -> Any:
        return self._collector.read(processes, now)


class Watched:
    """A poller on `collectors`; the one named `source` is to be broken, the host's memory is the bystander."""

    def __init__(
        self, *collectors: Collector, source: str = "", wall: Callable[[], float] = time.time, bystander: bool = True
    ) -> None:
        others = [HostMemCollector()] if bystander else []
        groups = [[Hurried(collector)] for collector in (*collectors, *others)]
        self._poller = Poller(groups, lambda _: [], wall=wall)
        self._reconciler = Reconciler()
        self._source = source
        self.findings: tuple[Finding, ...] = ()
        self.events: list[Event] = []

    def __enter__(self) -> Self:
        self._poller.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._poller.stop()

    def until(self, holds: Callable[[Sample], bool], seconds: float = 15.0) -> Sample:
        """The first sample of which that is true; every one of them is judged."""
        deadline = time.monotonic() + seconds
        while True:
            sample = self._poller.sample()
            self.events += sample.events
            self.findings = self._reconciler.update(sample).findings
            if holds(sample):
                return sample
            assert time.monotonic() < deadline, (self.state(sample), [found.code for found in self.findings])
            time.sleep(0.05)

    def state(self, sample: Sample, name: str | None = None) -> SourceState | None:
        """How a source fares; by default the one to be broken."""
        return next((one for one in sample.sources if one.name == (name or self._source)), None)

    def well(self) -> Sample:
        """Wait until the source answers."""
        return self.until(lambda sample: (state := self.state(sample)) is not None and state.state == "ok")

    def broken(self, shows: str) -> Sample:
        """Wait until it says these words, in one line, while the bystander is read on."""
        sample = self.until(lambda one: (state := self.state(one)) is not None and shows in state.detail)
        state = self.state(sample)
        assert state is not None
        assert state.state in ("error", "no_data", "stale")
        assert state.detail.isprintable()
        assert len(state.detail) <= 500
        self.others_go_on(sample)
        return sample

    def others_go_on(self, since: Sample) -> None:
        """Wait for two more readings of the host's memory."""
        for _ in range(2):
            before = self.state(since, "hostmem")
            since = self.until(lambda one, before=before: self.state(one, "hostmem") != before)
            after = self.state(since, "hostmem")
            assert after is not None
            assert after.state == "ok"

    def finds(self, code: str, shows: str = "") -> Finding:
        """Wait for a finding with these words."""
        found: list[Finding] = []

        def there(_: Sample) -> bool:
            found[:] = [
                one for one in self.findings if one.code == code and shows in f"{one.server} {one.ranks} {one.message}"
            ]
            return bool(found)

        self.until(there)
        return found[0]

    def finds_no_more(self, code: str) -> None:
        """Wait until a finding closes."""
        self.until(lambda _: code not in {one.code for one in self.findings})
