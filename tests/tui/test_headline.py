"""The sentence on top at every width, what Enter opens below it, and findings that leave each other room."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ranktop.finding import Finding
from ranktop.reconcile import Reconciler, Verdict
from support import samples
from support.feed import StoryFeed
from support.many import many
from support.screen_text import screen_text
from tui.app import RanktopApp
from tui.draw.glyphs import ASCII, UNICODE
from tui.draw.spans import TextLine, width
from tui.draw.title import draw_headline, draw_title
from tui.themes import load_theme
from tui.timekeys import LiveTime
from tui.views.finding_rows import draw_findings

SIZES = [(80, 24), (120, 40)]


def text(text_line: TextLine) -> str:
    return "".join(span.text for span in text_line)


def told(*findings: Finding) -> Verdict:
    """The healthy node with these findings, and the sentence that they give."""
    from ranktop.reconcile.headline import headline

    verdict = Reconciler().update(samples.healthy())
    sentence, severity = headline(verdict.sample, verdict.servers, findings, None)
    return replace(verdict, findings=findings, headline=sentence, headline_severity=severity)


def finding(message: str, code: str = "HOST-POOL-OVER", severity: str = "breach", advice: str = "") -> Finding:
    since = "2026-11-29T14:03:27Z"
    return Finding(
        code, severity, message, rank="TP3", ranks=("TP3",), server=samples.SERVER, since=since, advice=advice
    )  # type: ignore[arg-type]


LONG = "primary pool is 57.6 MB, planned 52.4 MB (+10.0 %)"


def test_where_the_sentence_does_not_fit_since_when_goes_before_its_end() -> None:
    verdict = told(finding(LONG), finding("another"), finding("a third"))
    wide = text(draw_headline(verdict, 120, UNICODE))
    assert wide.startswith(f" ■ TP3: {LONG}, since ")
    assert wide.rstrip().endswith("; 2 more below")
    narrow = text(draw_headline(verdict, 80, UNICODE))
    assert narrow.startswith(f" ■ TP3: {LONG} ")
    assert narrow.endswith("+2 more ")
    assert len(narrow) == 80
    assert text(draw_headline(told(finding(LONG)), 62, UNICODE)).rstrip() == f" ■ TP3: {LONG}"


@pytest.mark.parametrize("cells", [20, 40, 60, 80, 120, 200])
def test_the_lines_on_top_have_the_width_of_the_screen_and_say_where_they_are_cut(cells: int) -> None:
    verdict = told(finding(LONG * 4), finding("another"))
    assert text(draw_headline(verdict, cells, ASCII)).isascii()
    assert width(draw_headline(verdict, cells, UNICODE)) == cells
    assert "…" in text(draw_headline(verdict, cells, UNICODE))
    title = draw_title(verdict, cells, ASCII, mode="live", shown_at=samples.START)
    assert text(title).isascii()
    words = text(title).partition(" up ")[0].split()
    assert set(words) <= {
        *(
            "node-a",
            "GLM-5.2-FP8",
            "TP8",
            "L2",
            "120",
            "GB/rank",
            "sglang",
            "0.5.18",
            "write_through",
            "page_first",
            "$",
        ),
        *("node-a$", "up", "live", "14:13:20"),
    }, "no word of the launch is cut"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("view", ["1", "2", "9"])
async def test_enter_without_a_cursor_opens_the_finding_of_the_sentence(size: tuple[int, int], view: str) -> None:
    sample = samples.with_pool(samples.healthy(), 3, 132_000_000_000, 24_147_002_880)
    app = RanktopApp(LiveTime(StoryFeed([sample]), Reconciler().update), [load_theme("night")], UNICODE)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.press(view, "enter")
        await pilot.pause()
        shown = screen_text(app)
        assert "■ HOST-POOL-OVER   breach   since" in shown
        assert "(132 GB)   measured" in shown
        await pilot.press("enter", "escape")
        await pilot.pause()
        assert "■ HOST-POOL-OVER   breach" not in screen_text(app), "one escape is enough"


async def test_enter_opens_nothing_where_all_is_well() -> None:
    app = RanktopApp(LiveTime(StoryFeed([samples.healthy()]), Reconciler().update), [load_theme("night")], UNICODE)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        before = screen_text(app)
        await pilot.press("enter")
        await pilot.pause()
        assert screen_text(app) == before


ADVICE = "this rank was not launched with the flags of its peers: " * 6
MANY = (
    finding(LONG * 5, advice=ADVICE),
    finding("b " * 80, "NUMA-REMOTE", "warn", ADVICE),
    finding("c " * 80, "HOST-PRESSURE", "warn", ADVICE),
)


@pytest.mark.parametrize("room", [5, 9, 12, 15, 18, 60, None])
def test_no_finding_is_hidden_by_the_words_of_another(room: int | None) -> None:
    rows = [text(row.line) for row in draw_findings(told(*MANY), 80, UNICODE, room=room)]
    seen = rows if room is None else rows[:room]
    for one in MANY:
        assert any(one.code in row for row in seen)
    if room is not None:
        assert len(rows) <= max(room, 12)
        assert len(rows) >= min(room, len(draw_findings(told(*MANY), 80, UNICODE))), "no row is left empty either"
    assert {width(row.line) for row in draw_findings(told(*MANY), 80, UNICODE, room=room)} == {80}


def test_columns_of_findings_stand_under_each_other() -> None:
    effect = replace(finding("an effect", "METRICS-RANK0-ONLY", "info"), causes=("HOST-POOL-OVER",))
    rows = [text(row.line) for row in draw_findings(told(finding("a cause"), effect), 120, UNICODE)]
    assert rows[0].index("TP3") == rows[1].index("TP3")
    assert rows[0].index("a cause") == rows[1].index("an effect")
    assert "METRICS-RANK0-ONLY" in rows[1]


@pytest.mark.parametrize("size", SIZES)
async def test_findings_are_on_the_screen_also_beside_many_ranks(size: tuple[int, int]) -> None:
    sample = samples.with_pool(many(64), 3, 132_000_000_000, 24_147_002_880)
    app = RanktopApp(LiveTime(StoryFeed([sample]), Reconciler().update), [load_theme("night")], UNICODE)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        shown = screen_text(app).splitlines()
        assert any(row.startswith(" ■ HOST-POOL-OVER") for row in shown)
        assert sum(row.startswith(" TP") for row in shown) >= 8
        await pilot.press("2")
        await pilot.pause()
        assert len(screen_text(app).splitlines()) == size[1], "a view without a tail has the whole screen"
