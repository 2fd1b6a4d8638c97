"""`record`, `mark`, `replay`, `cut`, `export` as commands: what they print, write and exit with."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ranktop.cli import main
from ranktop.reconcile import Reconciler
from ranktop.recording.reader import Recording
from ranktop.recording.writer import Writer
from support.samples import START, healthy, with_pool

NAMES = ("record", "mark", "replay", "cut", "export", "report", "compare", "packet")


@pytest.fixture(autouse=True)
def known_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.setitem(main.COMMANDS, name, "")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five minutes; in the third one TP3 has too large a pool."""
    path = tmp_path_factory.mktemp("recorded") / "a.rtop"
    writer, reconciler = Writer(str(path), {"host": "node-a"}), Reconciler()
    for second in range(300):
        sample = healthy(float(second))
        if 130 <= second < 170:
            sample = with_pool(sample, 3, 130 * 10**9, 24 * 10**9)
        writer.append(sample, reconciler.update(sample))
    writer.close()
    return path


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_export_has_a_row_per_sample_and_rank_and_units_in_the_header(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["export", str(path), "--from", "-10s", "--ranks", "TP3,TP5"]) == 0
    rows = table(capsys.readouterr().out)
    assert [row["rank"] for row in rows[:3]] == ["TP3", "TP5", "TP3"]
    assert len(rows) == 2 * 10 + 2
    assert rows[0]["host.primary [bytes]"] == rows[0]["host.primary.planned [bytes]"] == "120000012288"
    assert rows[0]["node.host.available [bytes]"] == str(346 * 10**9)


def test_export_of_a_range_is_judged_with_what_came_before(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    since = "2026-09-21T14:15:40+00:00"
    assert (
        main.run(["export", str(path), "--format", "jsonl", "--from", since, "--ranks", "TP3", "--fields", "findings"])
        == 0
    )
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert set(rows[0]) == {"time", "unix_seconds", "server", "rank", "findings"}
    assert rows[0]["unix_seconds"] == START + 140
    assert "HOST-POOL-OVER" in rows[0]["findings"].split()
    assert rows[-1]["findings"] == ""


def test_export_to_parquet(path: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert main.run(["export", str(path), "--format", "parquet", "-o", str(tmp_path / "a.parquet")]) == 0
    assert parquet.read_table(tmp_path / "a.parquet").num_rows == 300 * 8


def test_cut_gives_whole_minutes_that_begin_with_what_was_open(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = tmp_path / "small.rtop"
    assert main.run(["cut", str(path), "--from", "-2m", "--to", "-90s", "-o", str(small)]) == 0
    assert "120 samples" in capsys.readouterr().out
    with Recording(str(path)) as whole, Recording(str(small)) as part:
        assert part.damage == []
        found = list(part.samples())
        assert [recorded.sample for recorded in found] == [
            recorded.sample for recorded in whole.samples(found[0].seq, found[-1].seq)
        ]
        assert found[0].seq % 60 == 1
        assert found[0].sample.at_unix_seconds <= START + 179 <= found[-1].sample.at_unix_seconds
        assert part.meta["host"] == "node-a"
        assert "longer recording" in part.meta["cut_from"]
    assert small.stat().st_size < path.stat().st_size


@pytest.mark.parametrize(("since", "code"), [("0", 0), ("-3000", 0), ("600", 3)])
def test_a_time_of_day_is_that_of_the_file(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], since: str, code: int
) -> None:
    """Before its beginning: all of it. After its end: a line with what it has, as it can be typed."""
    clock = datetime.fromtimestamp(START + float(since)).strftime("%H:%M:%S")
    assert main.run(["cut", str(path), "--from", clock, "-o", str(tmp_path / "part.rtop")]) == code
    said = capsys.readouterr()
    assert ("300 samples" in said.out) == (code == 0)
    if code:
        span = said.err.partition("(it has ")[2].rstrip().removesuffix(")")
        assert [datetime.fromisoformat(end).timestamp() - START for end in span.split(" to ")] == [0, 299]


def test_a_finding_that_was_open_when_the_cut_begins_is_in_it(path: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.rtop"
    assert main.run(["cut", str(path), "--from", "2026-09-21T14:15:45+00:00", "-o", str(small)]) == 0
    with Recording(str(small)) as part:
        opened = [(note.kind, note.code) for note in part.events() if note.code == "HOST-POOL-OVER"]
    assert opened == [("finding_opened", "HOST-POOL-OVER"), ("finding_closed", "HOST-POOL-OVER")]


def test_nothing_is_overwritten(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.read_bytes()
    assert main.run(["cut", str(path), "-o", str(path), "--overwrite"]) == 2
    assert main.run(["record", "-o", str(path)]) == 2
    assert path.read_bytes() == before
    assert all(line.startswith("ranktop: ") for line in capsys.readouterr().err.splitlines())


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["export", "missing.rtop"], 3),
        (["export", "{path}", "--from", "yesterday"], 2),
        (["export", "{path}", "--from", "2020-01-01", "--to", "2020-01-02"], 3),
        (["export", "{path}", "--format", "parquet"], 2),
        (["replay", "{path}"], 2),
        (["mark", "missing.rtop", "x"], 2),
        (["mark", "{path}", " "], 2),
        (["cut", "{path}", "-o", "/nowhere/x.rtop"], 2),
        (["record", "-o", "/nowhere/x.rtop"], 2),
        (["record", "-o", "x.rtop", "--duration", "soon"], 2),
    ],
)
def test_what_cannot_be_done_is_one_line(
    path: Path, arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run([argument.format(path=path) for argument in arguments]) == code
    err = capsys.readouterr().err
    assert err.startswith("ranktop: ")
    assert err.count("\n") == 1


def test_a_mark_lands_in_a_recording_that_nobody_writes(path: Path, tmp_path: Path) -> None:
    small = tmp_path / "a.rtop"
    small.write_bytes(path.read_bytes())
    assert main.run(["mark", str(small), "removed", "the flag"]) == 0
    with Recording(str(small)) as recording:
        assert [note.text for note in recording.events() if note.kind == "mark"] == ["removed the flag"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_closes_the_file(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "a.rtop"
    code = f"""
        from ranktop.cli import main
        main.COMMANDS.setdefault("record", "")
        raise SystemExit(main.run(["record", "-o", {str(path)!r}, "--interval", "0.2", "--pid", "1"]))
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert "recording" in child.stdout.readline()
    time.sleep(1.5)
    child.send_signal(number)
    out, err = child.communicate(timeout=20)
    assert child.returncode == 0, err
    assert "samples" in out
    assert os.listdir(tmp_path) == ["a.rtop"]
    with Recording(str(path)) as recording:
        assert recording.index.count >= 3
        assert recording.meta["interval_seconds"] == "0.2"


def test_secrets_of_a_given_launch_are_not_recorded(tmp_path: Path) -> None:
    launch, path = tmp_path / "launch.txt", tmp_path / "a.rtop"
    launch.write_text("API_TOKEN=s3cret1 python -m sglang.launch_server --model-path a/b --tp 8 --api-key s3cret2")
    assert main.run(["record", "-o", str(path), "--launch", str(launch), "--duration", "1", "--pid", "1"]) == 0
    assert b"s3cret" not in path.read_bytes()
    with Recording(str(path)) as recording:
        assert '"tp_size":8' in recording.meta["given_launch"]


def test_a_range_outside_says_which_times_were_looked_for(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["export", str(path), "--from", "2026-09-22T10:00:00+00:00"]) == 3
    asked, has = re.findall(r"(\S+) to (?:\S+?)\b", capsys.readouterr().err)
    assert datetime.fromisoformat(asked) == datetime(2026, 9, 22, 10, tzinfo=UTC)
    assert datetime.fromisoformat(has) == datetime.fromtimestamp(START, UTC)


@pytest.mark.parametrize(
    "command", [("mark", "FILE", "seen"), ("compare", "FILE", "FILE"), ("packet", "FILE", "-o", "FILE.packet")]
)
def test_what_a_damaged_file_is_answered_with_can_be_done(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    damaged, saved = tmp_path / "a b.rtop", tmp_path / "saved.rtop"
    damaged.write_bytes(bytes(100) + path.read_bytes()[100:])
    assert main.run([word.replace("FILE", str(damaged)) for word in command]) in (2, 3)
    advice = shlex.split(capsys.readouterr().err.partition("`ranktop ")[2].partition("`")[0])
    assert advice[0] == "cut"
    assert main.run([word.replace("NEW.rtop", str(saved)) for word in advice]) == 0
    assert main.run([word.replace("FILE", str(saved)) for word in command]) in (0, 1)
