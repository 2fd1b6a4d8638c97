"""The poller: a source that fails or hangs costs its own cells, nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from collectors.poller import Poller
from ranktop.sample import Event, Host, MetricsPage, NoData, Processes, Sample, ServerProcess, SourceError, SourceState


class Scripted:
    """A collector whose reads are given by a function of their number."""

    def __init__(
        self, name: str, part: str, read: Callable[[int], Any], server: str | None = None, period_seconds: float = 0.01
    ) -> None:
        self.name = name
        self.part = part
        self.server = server
        self.period_seconds = period_seconds
        self._read = read
        self.reads = 0

    def read(self, processes: Processes | None, now: float) -> Any:
        self.reads += 1
        return self._read(self.reads)


def raising(problem: Exception) -> Callable[[int], Any]:
    def read(_: int) -> Any:
        raise problem

    return read


def eventually(poller: Poller, holds: Callable[[Sample], bool], seconds: float = 5.0) -> Sample:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        sample = poller.sample()
        if holds(sample):
            return sample
        time.sleep(0.005)
    raise AssertionError(f"it never held; the last sample was {poller.sample()}")


def state_of(sample: Sample, name: str) -> SourceState:
    return next(state for state in sample.sources if state.name == name)


@pytest.fixture
def run() -> Any:
    """Starts pollers and stops them after the test."""
    started: list[Poller] = []

    def start(*collectors: Scripted, **options: Any) -> Poller:
        poller = Poller([[collector] for collector in collectors], options.pop("for_server", lambda _: []), **options)
        started.append(poller)
        poller.start()
        return poller

    yield start
    for poller in started:
        poller.stop()


def test_parts_become_fields(run: Any) -> None:
    poller = run(Scripted("hostmem", "host", lambda _: Host(total_bytes=7)))
    sample = eventually(poller, lambda sample: sample.host is not None)
    assert sample.host == Host(total_bytes=7)
    assert state_of(sample, "hostmem").state == "ok"


def test_before_the_first_answer_a_source_is_waiting(run: Any) -> None:
    hold = threading.Event()
    poller = run(Scripted("slow", "host", lambda _: hold.wait(5)))
    assert state_of(poller.sample(), "slow").code == "waiting"
    hold.set()


@pytest.mark.parametrize(
    ("problem", "state", "code", "detail"),
    [
        (NoData("no NVIDIA driver here", "no_driver"), "no_data", "no_driver", "no NVIDIA driver here"),
        (SourceError("GET x: 404", "http_404"), "error", "http_404", "GET x: 404"),
        (ZeroDivisionError("oops"), "error", "defect", "bad: ZeroDivisionError: oops (a defect)"),
    ],
)
def test_a_failing_source_says_so_and_the_others_go_on(
    run: Any, problem: Exception, state: str, code: str, detail: str
) -> None:
    good = Scripted("good", "host", lambda number: Host(total_bytes=number))
    poller = run(Scripted("bad", "gpus", raising(problem)), good)
    sample = eventually(poller, lambda sample: state_of(sample, "bad").code == code and good.reads > 3)
    assert (state_of(sample, "bad").state, state_of(sample, "bad").detail) == (state, detail)
    assert sample.gpus is None
    assert sample.host is not None


def test_a_defect_does_not_end_its_thread(run: Any) -> None:
    def read(number: int) -> Host:
        if number < 3:
            raise RuntimeError
        return Host(total_bytes=number)

    poller = run(Scripted("flaky", "host", read))
    assert state_of(eventually(poller, lambda sample: sample.host is not None), "flaky").state == "ok"


def test_the_last_value_stays_through_an_error_and_goes_with_no_data(run: Any) -> None:
    steps = threading.Semaphore(1)

    def read(number: int) -> Host:
        steps.acquire()
        if number == 1:
            return Host(total_bytes=1)
        if number == 2:
            raise SourceError("hiccup")
        raise NoData("gone")

    poller = run(Scripted("hostmem", "host", read))
    eventually(poller, lambda sample: sample.host is not None)
    steps.release()
    sample = eventually(poller, lambda sample: state_of(sample, "hostmem").state == "error")
    assert sample.host == Host(total_bytes=1)
    steps.release()
    eventually(poller, lambda sample: sample.host is None and state_of(sample, "hostmem").state == "no_data")
    steps.release(1000)


def test_a_hanging_source_is_told_and_stopping_does_not_wait(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collectors.poller.HANG_SECONDS", 0.05)
    hold = threading.Event()
    good = Scripted("good", "host", lambda number: Host(total_bytes=number))
    poller = run(Scripted("stuck", "gpus", lambda _: hold.wait(30)), good)
    sample = eventually(poller, lambda sample: state_of(sample, "stuck").code == "timeout" and good.reads > 1)
    assert "no answer for" in state_of(sample, "stuck").detail
    started = time.monotonic()
    poller.stop()
    assert time.monotonic() - started < 5, "the source would hang for 30 s"
    hold.set()


def test_a_value_that_no_longer_comes_is_stale() -> None:
    now = [1000.0]
    reads: list[float] = []

    def read(number: int) -> Host:
        reads.append(now[0])
        return Host(total_bytes=number)

    collector = Scripted("hostmem", "host", read, period_seconds=3600)
    poller = Poller([[collector]], lambda _: [], wall=lambda: now[0])
    poller.start()
    eventually(poller, lambda sample: sample.host is not None)
    now[0] += 3 * 3600 + 2
    assert state_of(poller.sample(), "hostmem").state == "stale"
    poller.stop()


def test_on_a_clock_that_runs_fast_nothing_is_stale_or_hangs_for_it() -> None:
    began = time.monotonic()

    def fast() -> float:
        return 1000.0 * (time.monotonic() - began)

    collector = Scripted("hostmem", "host", lambda number: Host(total_bytes=number), period_seconds=0.2)
    poller = Poller([[collector]], lambda _: [], wall=fast, monotonic=fast, speed=1000.0)
    poller.start()
    sample = eventually(poller, lambda sample: sample.host is not None and sample.at_unix_seconds > 100.0)
    poller.stop()
    state = state_of(sample, "hostmem")
    assert (state.state, state.period_seconds) == ("ok", 200.0)


def server(name: str = "a:1", start: int = 1) -> ServerProcess:
    return ServerProcess(name, 10, start, url=f"http://{name}")


def page(name: str) -> MetricsPage:
    return MetricsPage(name, 0.0, 0.0, 0)


def test_servers_bring_their_sources_and_take_them_away(run: Any) -> None:
    present = [Processes(servers=(server("a:1"), server("b:2")))]
    made: list[str] = []

    def for_server(found: ServerProcess) -> list[list[Scripted]]:
        made.append(found.id)
        return [[Scripted("metrics", "metrics", lambda _: page(found.id), server=found.id)]]

    poller = run(Scripted("processes", "processes", lambda _: present[0]), for_server=for_server)
    sample = eventually(poller, lambda sample: set(sample.metrics) == {"a:1", "b:2"})
    assert sorted(made) == ["a:1", "b:2"]
    present[0] = Processes(servers=(server("a:1"),))
    sample = eventually(poller, lambda sample: set(sample.metrics) == {"a:1"})
    assert [state.server for state in sample.sources if state.name == "metrics"] == ["a:1"]


def test_a_restarted_server_gets_new_sources(run: Any) -> None:
    present = [Processes(servers=(server(start=1),))]
    made: list[int] = []

    def for_server(found: ServerProcess) -> list[list[Scripted]]:
        made.append(found.start_ticks)
        return []

    poller = run(Scripted("processes", "processes", lambda _: present[0]), for_server=for_server)
    eventually(poller, lambda _: made == [1])
    present[0] = Processes(servers=(server(start=2),))
    eventually(poller, lambda _: made == [1, 2])


def test_a_given_server_is_read_though_it_is_no_process_here(run: Any) -> None:
    far = ServerProcess("far:1", None, 0, url="http://far:1")

    def for_server(found: ServerProcess) -> list[list[Scripted]]:
        return [[Scripted("metrics", "metrics", lambda _: page(found.id), server=found.id)]]

    poller = run(Scripted("processes", "processes", lambda _: Processes()), for_server=for_server, given=[far])
    sample = eventually(poller, lambda sample: "far:1" in sample.metrics and sample.processes is not None)
    assert sample.processes is not None
    assert sample.processes.servers == (far,)


def test_events_are_given_once(run: Any) -> None:
    def read(number: int) -> tuple[Event, ...]:
        return (Event(float(number), "phase", f"event {number}"),) if number <= 3 else ()

    collector = Scripted("serverlog", "events", read)
    poller = run(collector)
    texts: list[str] = []
    deadline = time.monotonic() + 5
    while (len(texts) < 3 or collector.reads < 6) and time.monotonic() < deadline:
        texts += [event.text for event in poller.sample().events]
        time.sleep(0.005)
    assert texts == ["event 1", "event 2", "event 3"]


def test_what_a_server_told_goes_with_its_process() -> None:
    present = [Processes(servers=(server("a:1", start=1),))]
    answers = threading.Event()
    answers.set()

    def read(_: int) -> MetricsPage:
        if not answers.is_set():
            raise SourceError("refused", "refused")
        return page("a:1")

    poller = Poller(
        [[Scripted("processes", "processes", lambda _: present[0])]],
        lambda found: [[Scripted("metrics", "metrics", read, server=found.id)]],
        given=[ServerProcess("a:1", None, 0, url="http://a:1")],
    )
    poller.start()
    eventually(poller, lambda sample: "a:1" in sample.metrics)
    answers.clear()
    eventually(poller, lambda sample: state_of(sample, "metrics").state == "error")
    present[0] = Processes(servers=(server("a:1", start=2),))
    eventually(poller, lambda sample: "a:1" not in sample.metrics)
    poller.stop()


def test_servers_and_later_groups_wait_for_the_first_sample(run: Any) -> None:
    found = Processes(servers=(server("a:1", start=1),))
    seen = threading.Event()
    later = Scripted("placement", "placements", lambda _: {})
    metrics = Scripted("metrics", "metrics", lambda _: page("a:1"), server="a:1")
    host = Scripted("hostmem", "host", lambda reads: seen.set() if reads > 20 else None)
    poller = run(
        Scripted("processes", "processes", lambda _: found),
        host,
        for_server=lambda _: [[metrics]],
        later=[[later]],
        head_start_seconds=60.0,
    )
    assert seen.wait(10.0)
    assert (later.reads, metrics.reads) == (0, 0)
    assert state_of(poller.sample(), "placement").code == "waiting"
    # Each has a thread of its own: one having read says nothing of the other.
    eventually(poller, lambda sample: "a:1" in sample.metrics and later.reads > 0)


def test_a_preview_ends_no_head_start_and_takes_no_event(run: Any) -> None:
    seen = threading.Event()
    later = Scripted("placement", "placements", lambda _: {})
    said = Event(at_unix_seconds=1.0, kind="log", text="once")
    log = Scripted("serverlog", "events", lambda reads: (said,) if reads == 1 else ())
    host = Scripted("hostmem", "host", lambda reads: seen.set() if reads > 20 else None)
    poller = run(host, log, later=[[later]], head_start_seconds=60.0)
    assert seen.wait(10.0)
    preview = poller.preview()
    assert state_of(preview, "hostmem").state == "ok"
    assert preview.events == ()
    assert later.reads == 0
    assert poller.sample().events == (said,)
