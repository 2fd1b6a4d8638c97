"""Runs the collectors, each blocking source in a thread of its own, and composes their newest values into samples.

A source that fails or hangs costs its own cells only. Threads are daemons: leaving never waits for a stuck one.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from collectors.secrets import prose_without_secrets
from ranktop.printable import printable
from ranktop.sample import Collector, Event, NoData, Processes, Sample, ServerProcess, SourceError, SourceState

Group = Sequence[Collector]
"""Collectors that share one thread, because none of them can block another for long."""

HANG_SECONDS = 3.0
"""A read under way for longer than this is shown as hanging. Long enough for a scrape of a busy server."""

STALE_PERIODS = 3
_FIRST_PROCESSES_SECONDS = 0.5
_FIRST_PAINT_SECONDS = 0.1
"""To judge and draw the first sample."""
_MOST_DETAIL_CHARACTERS = 500
_MOST_LETTERS = 8000

_log = logging.getLogger(__name__)


class _Slot(NamedTuple):
    """The newest result of one collector."""

    state: SourceState
    value: Any = None
    has_value: bool = False


class Poller:
    """A `SampleFeed` over live sources.

    `local` runs from the start. `for_server` is asked once for every server that appears and gives the groups that
    read it; they end when the server does. `given` servers are read though they are no process of this node.
    Servers and the `later` groups wait for the first sample to be taken, `head_start_seconds` at most: what a first
    screen needs of the host, and that screen itself, come sooner.

    `wall` and `monotonic` are the node's clocks, which stamp what is read; `speed` says how many of their seconds a
    real one has (a stand-in node's can run fast). Sources are read, and waited for, in real time.
    """

    def __init__(
        self,
        local: Sequence[Group],
        for_server: Callable[[ServerProcess], Sequence[Group]],
        *,
        later: Sequence[Group] = (),
        given: Sequence[ServerProcess] = (),
        least_period_seconds: float = 0.0,
        head_start_seconds: float = 0.0,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        speed: float = 1.0,
    ) -> None:
        self._local = local
        self._later = later
        self._for_server = for_server
        self._given = tuple(given)
        self._least_period_seconds = least_period_seconds
        self._head_start_seconds = head_start_seconds
        self._wall = wall
        self._monotonic = monotonic
        self._speed = speed
        self._lock = threading.Lock()
        self._slots: dict[tuple[str, str | None], _Slot] = {}
        self._reading_since: dict[tuple[str, str | None], float] = {}
        self._events: list[Event] = []
        self._stop = threading.Event()
        self._server_stops: dict[tuple[str, int | None], threading.Event] = {}
        self._first_processes = threading.Event()
        self._first_sample = threading.Event()

    def start(self) -> None:
        # Before the thread that finds processes, which follows servers from then on.
        self._follow_servers(Processes())
        for group in self._local:
            self._spawn(group, self._stop)
        for group in self._later:
            self._spawn(group, self._stop, is_later=True)

    def stop(self) -> None:
        self._stop.set()
        self._first_sample.set()
        for stop in self._server_stops.values():
            stop.set()

    def wait_first(self, timeout_seconds: float) -> bool:
        """Wait until the processes were looked at once, so that a first screen can show real ranks."""
        return self._first_processes.wait(timeout_seconds)

    def sample(self) -> Sample:
        self._first_sample.set()
        with self._lock:
            events, self._events = tuple(self._events), []
        return self._composed(events)

    def preview(self) -> Sample:
        """What is known by now, without its events, which the next `sample` gives. Nobody's head start ends."""
        return self._composed(())

    def _composed(self, events: tuple[Event, ...]) -> Sample:
        now, monotonic = self._wall(), self._monotonic()
        real = time.monotonic()
        with self._lock:
            slots = dict(self._slots)
            reading_since = dict(self._reading_since)
        parts: dict[str, Any] = {}
        for (_, server), slot in slots.items():
            part = slot.state.part
            if not slot.has_value or part == "events":
                continue
            if server is not None:
                parts.setdefault(part, {})[server] = slot.value
            else:
                parts[part] = slot.value
        sources = tuple(
            _judge(slot.state, now, real - reading_since[key] if key in reading_since else None)
            for key, slot in sorted(slots.items(), key=lambda item: (item[0][1] or "", item[0][0]))
        )
        parts["processes"] = self._with_given(parts.get("processes"))
        return Sample(
            at_unix_seconds=now,
            at_monotonic_seconds=monotonic,
            host_name=socket.gethostname(),
            sources=sources,
            events=events,
            **parts,
        )

    def _wait_head_start(self) -> None:
        if self._first_sample.wait(self._head_start_seconds) and not self._stop.is_set() and self._head_start_seconds:
            self._stop.wait(_FIRST_PAINT_SECONDS)

    def _with_given(self, processes: Processes | None) -> Processes | None:
        """Servers named by URL that are no process of this node stand beside those that are."""
        if not self._given:
            return processes
        known = processes or Processes()
        urls = {server.url for server in known.servers}
        extra = tuple(server for server in self._given if server.url not in urls)
        return msgspec.structs.replace(known, servers=known.servers + extra)

    def _spawn(self, group: Group, stop: threading.Event, is_later: bool = False) -> None:
        for collector in group:
            key = (collector.name, collector.server)
            waiting = SourceState(
                collector.name,
                "no_data",
                part=collector.part,
                server=collector.server,
                code="waiting",
                detail="not read yet",
                period_seconds=collector.period_seconds * self._speed,
            )
            with self._lock:
                self._slots.setdefault(key, _Slot(waiting))
        name = "+".join(collector.name for collector in group)
        arguments = (group, stop, is_later)
        threading.Thread(target=self._run, args=arguments, name=f"ranktop {name}", daemon=True).start()

    def _run(self, group: Group, stop: threading.Event, is_later: bool) -> None:
        if is_later:
            self._wait_head_start()
        if all(collector.part != "processes" for collector in group):
            # Most sources are about processes: asked too early, their first answer would come a period late.
            self._first_processes.wait(_FIRST_PROCESSES_SECONDS)
        due = dict.fromkeys(range(len(group)), time.monotonic())
        while not stop.is_set():
            for index, collector in enumerate(group):
                if due[index] <= time.monotonic() and not stop.is_set():
                    self._read(collector, stop)
                    # From now and not from when it was due: after a hang or a suspend nothing is caught up on.
                    due[index] = time.monotonic() + max(collector.period_seconds, self._least_period_seconds)
            stop.wait(max(0.0, min(due.values()) - time.monotonic()))

    def _read(self, collector: Collector, stop: threading.Event) -> None:
        key = (collector.name, collector.server)
        with self._lock:
            self._reading_since[key] = time.monotonic()
            processes = self._slots.get(("processes", None))
        started = time.monotonic()
        value: Any = None
        state, code, detail = "ok", "", ""
        try:
            value = collector.read(processes.value if processes else None, self._wall())
        except NoData as reason:
            state, code, detail = "no_data", reason.code, str(reason)
        except SourceError as reason:
            state, code, detail = "error", reason.code, str(reason)
        except Exception as reason:
            # The thread must outlive a defect of one collector: its row says what happened, and it is read again.
            # What it says may quote what was read.
            _log.error("collector %s: %s", collector.name, printable(_safe(traceback.format_exc())))
            said = f"{collector.name}: {type(reason).__name__}: {_safe(str(reason))} (a defect)"
            state, code, detail = "error", "defect", said
        took = time.monotonic() - started
        self._store(key, collector, stop, state, code, detail, took, value)

    def _store(
        self,
        key: tuple[str, str | None],
        collector: Collector,
        stop: threading.Event,
        state: Any,
        code: str,
        detail: str,
        took: float,
        value: Any,
    ) -> None:
        has_processes = state == "ok" and collector.part == "processes"
        with self._lock:
            if stop.is_set():
                return
            self._reading_since.pop(key, None)
            if has_processes:
                self._forget_servers(value)
            before = self._slots.get(key)
            at = self._wall() if state == "ok" else (before.state.at_unix_seconds if before else None)
            after = SourceState(
                collector.name,
                state,
                part=collector.part,
                server=collector.server,
                code=code,
                detail=detail[:_MOST_DETAIL_CHARACTERS],
                at_unix_seconds=at,
                took_seconds=took,
                period_seconds=collector.period_seconds * self._speed,
            )
            if state == "ok":
                self._slots[key] = _Slot(after, value, True)
            elif state == "no_data" or before is None:
                self._slots[key] = _Slot(after)
            else:
                # The last value stays, and its age shows.
                self._slots[key] = _Slot(after, before.value, before.has_value)
            if state == "ok" and collector.part == "events":
                self._events.extend(value)
        if collector.part == "processes":
            if not self._first_processes.is_set():
                self._first_processes.set()
                self._wait_head_start()
            if has_processes:
                self._follow_servers(value)

    def _wanted(self, processes: Processes) -> dict[tuple[str, int | None], ServerProcess]:
        all_servers = (self._with_given(processes) or processes).servers
        return {(server.id, server.start_ticks): server for server in all_servers}

    def _forget_servers(self, processes: Processes) -> None:
        """In one step with the processes that say so: no sample may have the new ranks and what the old server said."""
        wanted = self._wanted(processes)
        for identity in [known for known in self._server_stops if known not in wanted]:
            self._server_stops.pop(identity).set()
            # Also of one that is back: what its process before said is not the new one's.
            self._slots = {key: slot for key, slot in self._slots.items() if key[1] != identity[0]}

    def _follow_servers(self, processes: Processes) -> None:
        for identity, server in self._wanted(processes).items():
            if identity not in self._server_stops:
                stop = self._server_stops[identity] = threading.Event()
                for group in self._for_server(server):
                    self._spawn(group, stop)


def _judge(state: SourceState, now: float, reading_for: float | None) -> SourceState:
    """Say that a source hangs or is stale, where its last word was better than that."""
    if reading_for is not None and reading_for > HANG_SECONDS:
        detail = f"no answer for {reading_for:.0f} s; its last values are kept and age"
        return msgspec.structs.replace(state, state="error", code="timeout", detail=detail)
    at = state.at_unix_seconds
    if state.state == "ok" and at is not None and now - at > STALE_PERIODS * state.period_seconds + 1:
        return msgspec.structs.replace(state, state="stale", code="stale", detail=f"last read {now - at:.0f} s ago")
    return state


def _safe(text: str) -> str:
    """Of a text that nobody foresaw: its ends, without secrets."""
    half = _MOST_LETTERS // 2
    kept = text if len(text) <= _MOST_LETTERS else f"{text[:half]} ... {text[-half:]}"
    return prose_without_secrets(kept)
