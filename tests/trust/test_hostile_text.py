"""Text of strangers in every field of a sample: it steers no terminal, no page, no table and no spreadsheet."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ranktop.cli import main
from ranktop.cli.check_markdown import check_markdown
from ranktop.cli.check_text import check_text
from ranktop.cli.documents import check_document, encode
from ranktop.cli.plain import changes, status
from ranktop.fleet.look import Fleet
from ranktop.fleet.rows import NodeRow, OpenFinding
from ranktop.printable import printable
from ranktop.reconcile import Reconciler, Verdict
from ranktop.recording.marks import Mark
from ranktop.recording.writer import Writer
from ranktop.sample import Event, Sample, ServerProcess, SourceState
from support import samples
from support.feed import StoryFeed
from tui.app import RanktopApp
from tui.draw.glyphs import UNICODE
from tui.themes import load_theme
from tui.timekeys import LiveTime
from tui.trails import Trails
from tui.views.fleet import FLEET_SORT, FleetView, fleet_verdict
from tui.views.view import Frame
from tui.widgets.lines import Lines

EVIL = (
    "=cmd|' /C calc'!A0"
    "\x1b]0;owned\x07\x1b[2J\x9b31m\x1b[?1049h"  # title, clear, C1, other screen
    "\r\n\x0b\x0c\x85\u2028forged line"
    "\u202egnp.exe\u2066\u200b\u200f\ufeff\xad"  # bidi, zero width
    "[bold red]markup[/] [@click=app.quit]x[/]"
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    "| [link](http://evil.example) `code` **bold**\U000e0041"
)
SERVER = "evil:1"
LONG = "A" * 1_000_000


def is_harmless(text: str) -> bool:
    return all(letter == "\n" or (letter.isprintable() and unicodedata.category(letter) != "Cf") for letter in text)


@cache
def hostile(seconds: float = 0.0, text: str = EVIL) -> Sample:
    """A node on which everything that can be text is hostile."""
    whole = samples.healthy(seconds)
    assert whole.processes is not None
    assert whole.gpus is not None
    server = ServerProcess(text, samples.MAIN_PID, 100, (*samples.LAUNCH.split(), text), "S", f"http://{SERVER}")
    at = whole.at_unix_seconds
    sources = (
        *(
            replace(one, server=text if one.server else None, state="error", code="odd", detail=text)
            for one in whole.sources
        ),
        SourceState(text, "error", part="events", server=text, code=text, detail=text, at_unix_seconds=at),
    )
    page, info = whole.metrics[samples.SERVER], whole.infos[samples.SERVER]
    return replace(
        samples.with_pool(whole, 3, 130 * 10**9, 24 * 10**9),
        host_name=text,
        sources=sources,
        processes=replace(
            whole.processes,
            servers=(server,),
            ranks=tuple(replace(rank, server=text, cpus_allowed=text) for rank in whole.processes.ranks),
        ),
        gpus=replace(
            whole.gpus,
            driver_version=text,
            gpus=tuple(replace(gpu, name=text, state="unknown", detail=text) for gpu in whole.gpus.gpus),
        ),
        metrics={text: replace(page, server=text)},
        infos={text: replace(info, server=text, version=text, served_model_name=text, model_path=text)},
        events=tuple(
            Event(at, kind, text, server=text, rank=text, fields={"reason": text, text[:40]: text})
            for kind in ("other", "phase", "out_of_memory", "pd_failed", "exception", "xid", "oom_kill")
        ),
    )


def judged(text: str = EVIL) -> Verdict:
    reconciler = Reconciler()
    reconciler.update(hostile(0.0, text))
    return reconciler.update(hostile(5.0, text))


def outputs(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """What a terminal gets to see of it, by the name of the form."""
    yield "check", check_text(verdict)
    yield "markdown", check_markdown(verdict)
    yield "json", encode(check_document(verdict, 5.0))
    yield "plain", status(verdict)
    findings = {(finding.code, finding.server): finding for finding in verdict.findings}
    yield "changes", "\n".join(changes({}, findings))


@pytest.mark.parametrize("form", ["check", "markdown", "json", "plain", "changes"])
def test_nothing_drives_a_terminal(form: str) -> None:
    text = dict(outputs(judged()))[form]
    assert "cmd" in text, "the text itself is shown"
    assert is_harmless(text)


def test_json_stays_json_and_says_what_was_there() -> None:
    document = json.loads(dict(outputs(judged()))["json"])
    assert document["host"] == EVIL


def test_a_table_of_markdown_keeps_its_columns() -> None:
    rows = [line for line in check_markdown(judged()).splitlines() if line.startswith("| ")]
    columns = [row.replace("\\|", "").count("|") for row in rows]
    assert set(columns) == {6, 7}, "five columns of findings, six of servers"
    outside_of_code = re.sub(r"(?<!\\)`[^`]*`", "", "".join(rows))
    assert re.search(r"(?<!\\)[<\[\]`*]", outside_of_code) is None


async def _rendered(text: str) -> dict[str, str]:
    """Every view's rows as they go to the terminal."""
    app = RanktopApp(
        LiveTime(StoryFeed([hostile(0.0, text)]), Reconciler().update),
        [load_theme("night"), load_theme("day")],
        UNICODE,
    )
    shown: dict[str, str] = {}
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        for key in ("1", "2", "3", "4", "5", "6", "7", "8", "9", "1,end,enter", "1,down,enter"):
            await pilot.press(*key.split(","))
            await pilot.pause()
            rows: list[str] = []
            for part in app.screen_stack[0].query(Lines):
                rows += ["".join(segment.text for segment in part.render_line(y)) for y in range(part.size.height)]
            shown[key] = "\n".join(rows)
            await pilot.press("escape")
    return shown


async def test_every_screen_draws_it_as_text() -> None:
    shown = await _rendered(EVIL)
    for key, rows in shown.items():
        assert is_harmless(rows), key
        assert all(len(row) <= 120 for row in rows.splitlines()), key
    assert "[bold red]" in "".join(shown.values()), "markup is shown, not obeyed"


async def test_a_megabyte_in_every_field_is_cut() -> None:
    for key, rows in (await _rendered(LONG)).items():
        assert all(len(row) <= 120 for row in rows.splitlines()), key


def test_text_for_people_is_cut_as_well() -> None:
    assert len(check_text(judged(LONG))) < 100_000


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "a.rtop"
    writer, reconciler = Writer(str(path), {"host": EVIL, EVIL[:60]: EVIL}), Reconciler()
    for second in range(6):
        sample = hostile(float(second))
        writer.append(sample, reconciler.update(sample), [Mark(sample.at_unix_seconds, EVIL)] if second == 3 else None)
    writer.close()
    return path


def test_a_spreadsheet_runs_nothing(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["export", str(recording)]) == 0
    text = capsys.readouterr().out
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert any(cell.startswith("'=cmd") for cell in cells)
    assert not [cell for cell in cells if cell[:1] in "=@|%" and cell]
    assert not [cell for cell in cells if cell[:1] in "+-" and not _is_number(cell)]
    assert is_harmless(text.replace("\r\n", "\n"))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return not cell
    return True


def test_json_lines_drive_no_terminal(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["export", str(recording), "--format", "jsonl"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(is_harmless(line) for line in lines)
    assert json.loads(lines[0])["server"] == EVIL


class _Tags(html.parser.HTMLParser):
    """The tags and attributes that a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[str, str | None]]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))


def test_a_report_has_no_tag_of_theirs(recording: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    assert main.run(["report", str(recording), "-o", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    tags = _Tags()
    tags.feed(text)
    assert not [
        tag for tag, _ in tags.found if tag in ("img", "iframe", "object", "embed", "a", "link", "base", "form")
    ]
    assert not [name for _, attributes in tags.found for name, _ in attributes if name.startswith("on")]
    assert sum(tag == "script" for tag, _ in tags.found) == 3
    own = text.partition("<body")[2]
    assert not set(own) & set("\x1b\x9b\u202e\u2066\u200b\u200f\ufeff\u2028")


def test_an_error_line_is_one_harmless_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["export", str(tmp_path / EVIL.replace("/", ""))],
        [EVIL],
        ["check", f"--{EVIL}"],
        ["demo", EVIL],
    ):
        assert main.run(arguments) in (2, 3)
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert is_harmless(said)


def test_the_page_of_the_exporter_has_a_line_a_sample() -> None:
    from prometheus_client.parser import text_string_to_metric_families

    from ranktop.exporter.families import points
    from ranktop.exporter.page import render

    page = render(points(judged())).decode()
    found: list[Any] = [one for family in text_string_to_metric_families(page) for one in family.samples]
    assert {one.labels["server"] for one in found if "server" in one.labels} == {EVIL}
    assert all(line.startswith(("#", "ranktop_")) for line in page.split("\n") if line)


def test_surrogates_of_odd_file_names_can_be_printed() -> None:
    assert printable("a\udcff") == "a\\udcff"
    printable("a\udcff\U000e0041").encode()
    assert msgspec.json.decode(f'"{printable(chr(0x9B))}"') == "\x9b"


CRASHING = """
import sys
sys.path.insert(0, sys.argv[1])
from trust.test_hostile_text import EVIL, hostile
from ranktop.reconcile import Reconciler
from support.feed import StoryFeed
from tui.app import RanktopApp
from tui.draw.glyphs import UNICODE
from tui.themes import load_theme
from tui.timekeys import LiveTime

def judge(sample):
    local = "a local variable, as it came"
    raise ValueError(EVIL)

RanktopApp(LiveTime(StoryFeed([hostile(0.0)]), judge), [load_theme("night")], UNICODE).run(headless=True)
"""


def test_a_crash_of_the_screen_shows_no_variables_and_steers_no_terminal() -> None:
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", CRASHING, str(tests)], capture_output=True, text=True, timeout=60, cwd=tests.parent
    )
    said = done.stdout + done.stderr
    assert "ValueError: =cmd" in said
    assert "a local variable, as it came" not in said.replace('local = "a local variable, as it came"', "")
    assert is_harmless(re.sub(r"\x1b\[[0-9;?]*[a-z]|\x07", "", said.replace("\r", "")))
    assert "]0;owned" in said, "as text"
    assert "\x1b]0;" not in said


def test_the_fleet_draws_what_prometheus_says_as_text() -> None:
    """Labels of a Prometheus that somebody else fills: instance, group, codes."""
    row = NodeRow(EVIL, "ranktop", group=EVIL, severity="breach", findings=(OpenFinding(EVIL, "breach", 2),))
    gone = NodeRow(EVIL + "2", "gone", group=EVIL)
    seen = Fleet(0.0, (row, gone))
    frame = Frame(fleet_verdict(seen, EVIL, None), 120, UNICODE, Trails(), FLEET_SORT)
    drawn = "\n".join("".join(span.text for span in one.line) for one in FleetView(seen).draw(frame).rows)
    assert "cmd" in drawn
    assert is_harmless(drawn)
