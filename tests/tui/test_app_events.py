"""What the Events view tells, through Pilot."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from collectors.serverlog_lines import WORDINGS
from ranktop.finding import Finding
from ranktop.reconcile import Reconciler
from ranktop.sample import Event, Sample
from support import samples
from support.app import breach, make_app
from support.feed import StoryFeed
from support.screen_text import screen_text
from tui.draw.glyphs import UNICODE
from tui.eventlog import EventLog
from tui.happening import FOLD_SECONDS, Happening
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


POOL = "Allocating kv hierarchical KV host pool: 1024 tokens, 0.05 GB host memory."


def pool(rank: int | None, at: float = 0.0, text: str = POOL, server: str = samples.SERVER) -> Event:
    return Event(samples.START + at, "host_pool", text, server, None if rank is None else f"TP{rank}")


def told(*samples_of_events: tuple[Event, ...]) -> list[tuple[str, str]]:
    """Where and what of log lines that came with successive samples."""
    verdict, log = Reconciler().update(samples.healthy()), EventLog()
    for events in samples_of_events:
        log.push(replace(verdict, sample=replace(verdict.sample, events=events)))
    return [(row.where, row.text) for row in log.rows() if row.kind == "host_pool"]


ALL = tuple(map(pool, range(8)))
LATE = tuple(pool(rank, FOLD_SECONDS + 1) for rank in range(8))
ELSEWHERE = tuple(pool(rank, server="other:1") for rank in range(8))
HALVES = ["TP0-3 (4 ranks)", "TP4-7 (4 ranks)"]


@pytest.mark.parametrize(
    ("logged", "wheres"),
    [
        ((ALL,), ["TP0-7 (8 ranks)"]),
        ((ALL[:3], (), ALL[3:]), ["TP0-7 (8 ranks)"]),
        ((ALL[5:] + ALL[:5],), ["TP0-7 (8 ranks)"]),
        ((ALL[:2],), ["TP0, TP1"]),
        ((ALL, tuple(pool(rank, 4) for rank in range(8))), ["TP0-7 (8 ranks)", "TP0-7 (8 ranks)"]),
        ((ALL[:4], LATE[4:]), HALVES),
        (((*ALL[:7], pool(7, text="Allocating 9 GB")),), ["TP0-6 (7 ranks)", "TP7"]),
        ((ALL[:4], ELSEWHERE[4:]), HALVES),
        (((pool(None), pool(None)),), [samples.SERVER] * 2),
        (((pool(None),), (pool(None),)), [samples.SERVER] * 2),
    ],
    ids=["one", "read in pieces", "out of order", "two", "twice", "late", "differs", "servers", "main", "main again"],
)
def test_equal_lines_of_several_ranks_are_one(logged: tuple[tuple[Event, ...], ...], wheres: list[str]) -> None:
    assert [where for where, _ in told(*logged)] == wheres


def test_the_time_before_a_rank_logged_it_does_not_name_it() -> None:
    verdict, log = Reconciler().update(samples.healthy()), EventLog()
    log.push(replace(verdict, sample=replace(verdict.sample, events=tuple(pool(rank, rank) for rank in range(8)))))
    then = log.until(samples.START + 3.5)
    assert [row.where for row in then.rows() if row.kind == "host_pool"] == ["TP0-3 (4 ranks)"]


async def test_a_line_of_eight_ranks_is_found_by_each_and_tells_each() -> None:
    unread = [ALL[:4]]

    def story(second: int) -> Sample:
        return replace(samples.healthy(second), events=unread.pop() if unread else ())

    app = make_app(StoryFeed(story))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("8", "slash", *"tp5", "enter")
        await pilot.pause()
        assert "nothing matches the filter" in screen_text(app)
        await pilot.press("escape", "slash", *"tp3", "enter", "down")
        await pilot.pause()
        chosen = next(row for row in screen_text(app).splitlines() if row.startswith("›"))
        assert "TP0-3 (4 ranks)" in chosen
        unread.append(tuple(pool(rank, 1) for rank in range(4, 8)))
        app._tick()
        await pilot.press("escape", "slash", *"tp5", "enter")
        await pilot.pause()
        grown = next(row for row in screen_text(app).splitlines() if row.startswith("›"))
        assert "TP0-7 (8 ranks)" in grown, "and the cursor stayed on it"
        await pilot.press("enter")
        await pilot.pause()
        shown = [row.strip() for row in screen_text(app).splitlines()]
    assert "14:13:20  TP0, TP1, TP2, TP3" in shown
    assert "14:13:21  TP4, TP5, TP6, TP7" in shown


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


def test_no_kind_of_a_log_line_is_cut() -> None:
    for wording in WORDINGS:
        event = Happening(samples.START, wording.kind, "TP0", "text", "text")
        frame = Frame(Reconciler().update(samples.healthy()), 120, UNICODE, Trails(), events=(event,))
        assert wording.kind in "".join(span.text for span in EventsView().draw(frame).rows[0].line)
