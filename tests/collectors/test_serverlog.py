"""A log is attached to near its end and followed through rotation, truncation and a restart."""

from __future__ import annotations

import gzip
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.follow import MAX_BEHIND_BYTES, MAX_LINE_BYTES, CommandFollower, FileFollower
from collectors.serverlog import ServerLogCollector
from collectors.serverlog_attach import Backlog
from collectors.serverlog_history import older_starts
from ranktop.sample import Event, Processes, ServerProcess, SourceError
from tests.collectors.log_files import ARGS, READY, UNIT_A, append, kinds, process


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    append(path, READY)
    return path


@pytest.fixture
def collector(log: Path) -> Iterator[ServerLogCollector]:
    collector = ServerLogCollector("a:1", path=log)
    yield collector
    collector.close()


def test_attach_then_follow(log: Path, collector: ServerLogCollector) -> None:
    assert kinds(collector.read(None, 1.0)) == ["ready"]
    assert collector.read(None, 2.0) == ()
    append(log, UNIT_A.format(3, 64))
    (event,) = collector.read(None, 3.0)
    assert (event.kind, event.rank, event.server, event.fields) == ("out_of_memory", "TP3", "a:1", {"asked_tokens": 64})


def test_a_line_without_its_end_waits(log: Path, collector: ServerLogCollector) -> None:
    collector.read(None, 1.0)
    whole = UNIT_A.format(3, 64) + "\n"
    with log.open("a") as file:
        for part in (whole[:20], whole[20:40]):
            file.write(part)
            file.flush()
            assert collector.read(None, 2.0) == ()
        file.write(whole[40:])
    assert kinds(collector.read(None, 3.0)) == ["out_of_memory"]


def test_rotation_loses_no_line(log: Path, collector: ServerLogCollector) -> None:
    collector.read(None, 1.0)
    with log.open("a") as old:
        old.write(UNIT_A.format(0, 1) + "\n")
        old.flush()
        log.rename(log.with_name("server.log.1"))
        old.write(UNIT_A.format(1, 2) + "\n")
    append(log, UNIT_A.format(2, 3))
    events = [*collector.read(None, 2.0), *collector.read(None, 3.0)]
    assert [event.rank for event in events] == ["TP0", "TP1", "TP2"]
    append(log, UNIT_A.format(3, 4))
    assert [event.rank for event in collector.read(None, 4.0)] == ["TP3"]


def test_truncation_begins_again(log: Path, collector: ServerLogCollector) -> None:
    append(log, *["filler"] * 50)
    collector.read(None, 1.0)
    log.write_text("")
    append(log, UNIT_A.format(1, 2))
    assert [event.rank for event in collector.read(None, 2.0)] == ["TP1"]


def test_nuls_of_a_copytruncate_are_no_text(log: Path, collector: ServerLogCollector) -> None:
    collector.read(None, 1.0)
    with log.open("ab") as file:
        file.write(b"\0" * 5000 + UNIT_A.format(1, 2).encode() + b"\n")
    assert [event.rank for event in collector.read(None, 2.0)] == ["TP1"]


def test_a_follower_far_behind_jumps(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 100 + b"\n")
    follower = FileFollower(path, 0)
    with path.open("ab") as file:
        file.truncate(MAX_BEHIND_BYTES + 10_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast\n")
    assert follower.read_lines()[-1] == b"last"
    assert follower.skipped_bytes() > MAX_BEHIND_BYTES / 2
    assert follower.skipped_bytes() == 0
    follower.close()


def test_an_endless_line_is_given_once_and_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a" * (MAX_LINE_BYTES + 100))
    follower = FileFollower(path, 0)
    assert [len(line) for line in follower.read_lines()] == [MAX_LINE_BYTES]
    with path.open("ab") as file:
        file.write(b"rest of it\nnext\n")
    assert follower.read_lines() == [b"next"]
    follower.close()


def test_the_last_two_starts_and_the_tail_of_a_long_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    filler = "[2026-11-29 09:01:00] nothing to see, move along please\n" * 80_000
    with path.open("w") as file:
        for size in (64, 96, 120):
            file.write(ARGS.format(size) + "\n" + UNIT_A.format(size, size) + "\n" + filler)
        file.write(READY + "\n")
    collector = ServerLogCollector("a:1", path=path)
    events: list[Event] = []
    while not events or collector._backlog is not None:
        events += collector.read(None, 1.0)
    collector.close()
    starts = [event.fields["args"]["hicache_size"] for event in events if event.kind == "server_args"]
    assert starts == [96, 120]
    assert [event.rank for event in events if event.kind == "out_of_memory"] == ["TP120"]
    assert kinds(tuple(events)).count("ready") == 1
    assert "S1" not in repr(events)


def test_a_search_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(ARGS.format(1) + "\n" + "y" * 99 + "\n" + "x" * 4_000_000 + "\n" + ARGS.format(2) + "\nend\n")
    backlog = Backlog(path)
    found: list[bytes] = []
    while not backlog.is_searched:
        found += backlog.search(0.0001)
    backlog.close()
    assert [line.decode() for line in found] == [ARGS.format(1)] or found[-1].decode() == ARGS.format(1)


def test_an_empty_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()
    collector = ServerLogCollector("a:1", path=path)
    assert collector.read(None, 1.0) == ()
    append(path, READY)
    assert kinds(collector.read(None, 2.0)) == ["ready"]
    collector.close()


def test_a_log_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"No such file.*--log FILE") as caught:
        ServerLogCollector("a:1", path=tmp_path / "none").read(None, 1.0)
    assert caught.value.code == "log_file"


def test_a_command_is_followed_and_ended(tmp_path: Path) -> None:
    script = f"print({READY!r}, flush=True); import time; time.sleep(60)"
    follower = CommandFollower([sys.executable, "-c", script])
    lines: list[bytes] = []
    deadline = time.monotonic() + 20
    while not lines and time.monotonic() < deadline:
        lines = follower.read_lines()
        time.sleep(0.02)
    assert lines == [READY.encode()]
    follower.close()
    assert follower._process.poll() is not None


def test_a_command_that_ended_is_asked_again_later(tmp_path: Path) -> None:
    collector = ServerLogCollector("a:1", command=f"echo '{READY}'")
    seen: list[str] = []
    deadline = time.monotonic() + 20

    def until_it_ends() -> None:
        while time.monotonic() < deadline:
            seen.extend(kinds(collector.read(None, 100.0)))
            time.sleep(0.02)

    with pytest.raises(SourceError, match="ended with status 0"):
        until_it_ends()
    assert seen == ["ready"]
    with pytest.raises(SourceError, match="ended"):
        collector.read(None, 105.0)
    assert collector._follower is None
    collector.read(None, 111.0)
    assert collector._follower is not None
    collector.close()


def test_a_command_that_is_none() -> None:
    for command in ("/no/such/program", ""):
        with pytest.raises(SourceError, match="check the command"):
            ServerLogCollector("a:1", command=command).read(None, 1.0)


def test_a_restarted_server_is_attached_to_anew(tmp_path: Path, log: Path) -> None:
    def processes(start: int) -> Processes:
        return Processes(servers=(ServerProcess(id="a:1", pid=42, start_ticks=start),))

    root = process(tmp_path, log)
    collector = ServerLogCollector("a:1", proc_root=root)
    assert kinds(collector.read(processes(1), 1.0)) == ["ready"]
    assert kinds(collector.read(processes(1), 2.0)) == []
    second = tmp_path / "second.log"
    append(second, UNIT_A.format(5, 5))
    (root / "42/fd/1").unlink()
    (root / "42/fd/1").symlink_to(second)
    assert [event.rank for event in collector.read(processes(2), 3.0)] == ["TP5"]
    collector.close()


def test_the_start_before_is_looked_for_in_older_files(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    append(path, ARGS.format(120), READY)
    (tmp_path / "server.log.1").write_text(READY + "\n")
    (tmp_path / "server.log.2.gz").write_bytes(gzip.compress(f"{ARGS.format(64)}\n{ARGS.format(96)}\n".encode()))
    (tmp_path / "server.log.3.gz").write_bytes(b"not gzip at all")
    for age, name in enumerate(("server.log.1", "server.log.2.gz", "server.log.3.gz")):
        os.utime(tmp_path / name, (100 - age, 100 - age))
    collector = ServerLogCollector("a:1", path=path)
    starts = [event for event in collector.read(None, 1.0) if event.kind == "server_args"]
    assert sorted(event.fields["args"]["hicache_size"] for event in starts) == [96, 120]
    assert [event for event in collector.read(None, 2.0) if event.kind == "server_args"] == []
    collector.close()


def test_older_starts_are_the_newest_of_them(tmp_path: Path) -> None:
    paths = [tmp_path / "new", tmp_path / "old", tmp_path / "none"]
    paths[0].write_bytes(b"server_args=3\nx\nserver_args=4")
    paths[1].write_bytes(b"server_args=1\nserver_args=2\n")
    assert older_starts(paths, 3) == [b"server_args=2", b"server_args=3", b"server_args=4"]
    assert older_starts(paths, 1) == [b"server_args=4"]
    assert older_starts([], 2) == []
