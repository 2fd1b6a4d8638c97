"""The page for the post-mortem: self-contained, drawn, and no way in for text from a recording."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from ranktop.reconcile import Reconciler
from ranktop.recording.episodes import episodes
from ranktop.recording.findings import FindingHistory
from ranktop.recording.marks import Mark
from ranktop.recording.reader import Recording
from ranktop.recording.report.build import report
from ranktop.recording.report.charts import charts
from ranktop.recording.writer import Writer
from ranktop.sample import Event
from support.samples import START, healthy, with_pool

HOSTILE = "</script><img src=http://evil.example/x onerror=alert(1)>\x1b[31m"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("report") / "a.rtop"
    writer, reconciler = Writer(str(path), {"note": HOSTILE}), Reconciler()
    for second in range(120):
        sample = healthy(float(second))
        if 40 <= second < 60:
            sample = with_pool(sample, 3, 130 * 10**9, 24 * 10**9)
        if second == 50:
            sample = replace(sample, events=(Event(START + 50, "other", HOSTILE),))
        marks = [Mark(START + 30, HOSTILE)] if second == 30 else None
        writer.append(sample, reconciler.update(sample), marks)
    writer.close()
    return Recording(str(path))


@pytest.fixture(scope="module")
def text(recording: Recording) -> str:
    return report(recording, Reconciler())


def test_nothing_is_fetched_from_anywhere(text: str) -> None:
    assert "default-src 'none'" in text
    assert not re.search(r"<(link|iframe|object|embed|base|form)\b", text)
    assert not re.search(r"<(img|script|a|video|audio|source)\b[^>]*\b(src|href)\b", text)
    assert len(text) < 1_000_000


def test_text_of_the_recording_is_never_markup(text: str) -> None:
    assert text.count("<script") == text.count("</script>") == 3
    assert "<img" not in text
    assert "\x1b" not in text
    assert "&lt;/script&gt;&lt;img" in text


def test_the_licence_of_the_chart_library_is_in_it(text: str) -> None:
    assert "The MIT License (MIT)" in text
    assert "Leon Sorokin" in text


def test_findings_have_their_time_and_their_events(recording: Recording, text: str) -> None:
    found = next(one for one in episodes(FindingHistory(recording.events())) if one.code == "HOST-POOL-OVER")
    assert (found.where, found.begin_unix_seconds) == ("TP3", START + 40)
    assert found.end_unix_seconds is not None
    assert found.end_unix_seconds >= START + 60
    assert "HOST-POOL-OVER" in text
    assert "finding_opened" in text


def test_a_line_that_begins_late_has_no_values_before() -> None:
    reconciler = Reconciler()
    verdicts = [
        reconciler.update(replace(healthy(second), host=None if second < 2 else healthy(second).host))
        for second in range(4)
    ]
    times, drawn = charts(verdicts)
    memory = next(chart for chart in drawn if chart.title == "Host memory")
    available = next(trace for trace in memory.traces if trace.label == "available")
    assert times == [START, START + 1, START + 2, START + 3]
    assert available.values == [None, None, 346.0, 346.0]


@pytest.mark.tools("chromium")
def test_a_browser_draws_it_and_asks_nobody(text: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(text, encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    ran = subprocess.run(
        [*command, "--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    drawn = re.search(r'data-charts="(\d+)"', ran.stdout)
    assert drawn is not None, ran.stderr[-2000:]
    assert int(drawn[1]) >= 5
    assert "CONSOLE" not in ran.stderr
