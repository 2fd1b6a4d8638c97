"""What the Events view tells, through Pilot."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ranktop.finding import Finding
from ranktop.reconcile import Reconciler
from ranktop.sample import Event, Sample
from support import samples
from support.app import breach, make_app
from support.feed import StoryFeed
from support.screen_text import screen_text
from tui.draw.glyphs import UNICODE
from tui.eventlog import EventLog, Happening
from tui.trails import Trails
from tui.views.events import EventsView
from tui.views.view import Frame

pytestmark = pytest.mark.usefixtures("utc")


async def test_events_tell_what_opened_and_closed() -> None:
    app = make_app(
        StoryFeed(lambda second: breach(samples.healthy(second)) if second == 1 else samples.healthy(second))
    )
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(5.3)
        await pilot.press("8")
        await pilot.pause()
        text = screen_text(app)
    assert "opened" in text
    assert "closed" in text
    assert text.index("closed") < text.index("opened"), "newest first"


async def test_batches_do_not_hide_what_happened() -> None:
    def story(second: int) -> Sample:
        at = samples.START + second
        batches = tuple(Event(at, "prefill_batch", f"batch {second}.{n}", samples.SERVER, "TP0") for n in range(400))
        dead = (Event(at, "oom_kill", "the kernel took it", samples.SERVER, "TP5"),) if second == 0 else ()
        return replace(samples.healthy(second), events=(*dead, *batches))

    app = make_app(StoryFeed(story))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        for _ in range(5):
            app._tick()
        await pilot.press("8")
        await pilot.pause()
        text = screen_text(app)
        assert "the kernel took it" in text, "two thousand batches later"
        assert "prefill_batch" not in text
        assert "300 log lines of batches left out: the filter `batch` shows them" in text
        await pilot.press("slash", *"prefill", "enter")
        await pilot.pause()
        assert screen_text(app).count("prefill_batch") > 30


def test_a_finding_that_gets_worse_is_not_closed() -> None:
    verdict = Reconciler().update(samples.healthy())
    log = EventLog()
    for severity in ("warn", "warn", "critical", "breach", None):
        finding = Finding("HOST-CGROUP", severity, f"now {severity}") if severity is not None else None
        log.push(replace(verdict, findings=(finding,) if finding is not None else ()))
    told = [(row.kind, row.text, row.role) for row in log.rows() if row.kind != "source"]
    assert told == [
        ("opened", "HOST-CGROUP now warn", "warn"),
        ("worse", "HOST-CGROUP now critical", "critical"),
        ("better", "HOST-CGROUP now breach", "breach"),
        ("closed", "HOST-CGROUP", "ok"),
    ]


def test_a_finding_that_another_takes_over_is_not_told_as_over() -> None:
    verdict = Reconciler().update(samples.healthy())
    log = EventLog()
    node = Finding("HOST-OOM-KILL", "critical", "1 kill")
    rank = Finding("HOST-OOM-KILL", "critical", "killed", server=samples.SERVER, ranks=("TP5",))
    for findings in ((node,), (node, rank), (rank,), ()):
        log.push(replace(verdict, findings=findings))
    closed = [(row.where, row.text, row.role) for row in log.rows() if row.kind == "closed"]
    assert closed == [
        ("node", "HOST-OOM-KILL; another one is open", "muted"),
        ("TP5", "HOST-OOM-KILL", "ok"),
    ]


def test_a_line_of_the_log_that_was_read_late_stands_at_its_time() -> None:
    late, early = (Happening(samples.START + at, "ready", "TP0", f"at {at}", "text") for at in (9, 3))
    frame = Frame(Reconciler().update(samples.healthy()), 80, UNICODE, Trails(), events=(late, early))
    shown = ["".join(span.text for span in row.line).split()[-1] for row in EventsView().draw(frame).rows]
    assert shown == ["9", "3"], "newest first"


async def test_enter_tells_all_of_an_event() -> None:
    words = "Not enough host memory for DSA indexer hierarchical cache, " * 6 + "and this is its end"

    def story(second: int) -> Sample:
        at = samples.START + second
        told = (Event(at, "host_pool_failed", words, samples.SERVER, "TP5"),) if second == 0 else ()
        return replace(samples.healthy(second), events=told)

    app = make_app(StoryFeed(story))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("8")
        await pilot.pause()
        assert "this is its end" not in screen_text(app)
        assert "host_pool_failed  TP5" in screen_text(app)
        await pilot.press("down", "enter")
        await pilot.pause()
        assert "and this is its end" in " ".join(screen_text(app).split())
        await pilot.press("escape")
        await pilot.pause()
        assert "this is its end" not in screen_text(app)


async def test_the_cursor_stays_on_its_event_while_others_come() -> None:
    def story(second: int) -> Sample:
        at = samples.START + second
        return replace(samples.healthy(second), events=(Event(at, "mark", f"number {second}", samples.SERVER, "TP5"),))

    app = make_app(StoryFeed(story))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("8", "down")
        await pilot.pause()
        chosen = next(row for row in screen_text(app).splitlines() if row.startswith("›"))
        for _ in range(30):
            app._tick()
        await pilot.pause()
        assert chosen in screen_text(app).splitlines(), "it was scrolled with"


def test_a_source_that_is_not_here_is_told_in_words() -> None:
    log = EventLog()
    for second, state in enumerate(("ok", "no_data")):
        sample = samples.with_source(samples.healthy(second), "metrics", state, "", "/metrics answers")
        log.push(Reconciler().update(sample))
    assert log.rows()[-1].text == "metrics is not here: /metrics answers"
